"""Jobs done by a cluster of Dask.distributed.

Few tasks are in flight, twice as many as the cluster has threads. The work travels once to every worker, also to those that come later (`delivery`).
What a job came to is fetched when it is there, handed on, and only then released: a worker that dies later costs nothing. A worker that dies before
is Dask's to replace; one that hangs is ended by us, for to Dask it looks alive.
"""

from __future__ import annotations

import asyncio
import pickle
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any

from bismut.errors import BismutError, DomainError, ProcessError
from bismut.executors.door import check_address, check_form, knock, waiting
from bismut.executors.executor import ATTEMPTS, PATIENCE
from bismut.executors.supervision import Crew, Elsewhere, News

_LOOK = 1.0  # seconds between two questions for who is there
_NEWS = 200  # messages a second that the scheduler is asked to pass on
_NOBODY = 30.0  # seconds without a worker after which that is said
_ENDING = 10.0  # seconds for a worker that hangs to be ended, and for that to be known
_ANSWER = 5.0  # seconds for a scheduler to answer before somebody else is listened to
_PARTING = 5.0  # seconds for workers to hear that a run has ended

_KEPT = "What was committed is kept, and the run can be resumed."


class Dask(Elsewhere):
    """An executor: a cluster of Dask.distributed.

    where       a Cluster or a Client of Dask, the address of a scheduler ("tls://host:8786"), or "local:2" for two processes on this machine
    insecure    allow a cluster elsewhere without TLS: anyone who can reach it can run programs on it
    attempts    how often a block is tried before it is reported as failed; an attempt ends when Dask has given up or the block raises
    patience    seconds without a sign of life after which a worker is terminated and its block given to another
    """

    def __init__(self, where: Any, *, insecure: bool = False, attempts: int = ATTEMPTS, patience: float = PATIENCE):
        super().__init__(attempts, patience)
        self._own: list[Any] = []  # to be closed by us, in this order
        self._client = self._connected(where, insecure)

    def __repr__(self) -> str:
        return f"Dask({self._client.scheduler.address!r})"

    def close(self) -> None:
        """Leave the cluster; one that was begun here ends."""
        while self._own:
            self._own.pop(0).close()

    def _crew(self, data: bytes) -> Crew:
        return _Crew(self._client, data, len(self._own) > 1, self.patience)

    def _connected(self, where: Any, insecure: bool) -> Any:
        distributed = _distributed()
        if isinstance(where, distributed.Client):
            check_address(where.scheduler.address, insecure)
            return where
        if isinstance(where, str) and (where == "local" or where.startswith("local:")):
            where = self._local(where)
            self._own.append(where)
        address = where if isinstance(where, str) else getattr(where, "scheduler_address", None)
        if not isinstance(address, str):
            raise DomainError(f"A cluster is tcp://host:port, tls://host:port, local:N, or a Cluster or Client of Dask, got {where!r}.")
        try:
            if isinstance(where, str):
                check_form(where)
            check_address(address, insecure)
            with waiting(address) as seconds:
                if isinstance(where, str):
                    knock(address, seconds)
                client = distributed.Client(where, set_as_default=False)
        except BaseException as problem:
            self.close()
            if isinstance(problem, BismutError) or not isinstance(problem, Exception):
                raise
            # Whatever Dask makes of the answer of a server that is no scheduler: from struct.error to MemoryError.
            told = isinstance(problem, OSError) and str(problem)
            why = str(problem) if told else "what listens there does not answer as a scheduler does"
            raise BismutError(f"There is no cluster at {address}: {why}. Start one with `dask scheduler` and `dask worker {address}`.") from problem
        self._own.insert(0, client)
        return client

    @staticmethod
    def _local(where: str) -> Any:
        """So many processes with one thread each, which nobody else can reach."""
        name, _, number = where.partition(":")
        if name != "local" or not number.isdigit() or int(number) < 1:
            raise DomainError(f"A cluster is tcp://host:port, tls://host:port or local:N, got {where!r}.")
        import dask

        # Samples of the stack a hundred times a second cost some percent, and nobody looks at them here.
        quiet = {"distributed.logging.distributed": "error", "distributed.worker.profile.enabled": False}
        # One set of threads each; spawned, never forked, for a forked JAX waits for ever.
        share = {"distributed.nanny.pre-spawn-environ.NPROC": 1, "distributed.worker.multiprocessing-method": "spawn"}
        with dask.config.set(quiet | share):
            return _distributed().LocalCluster(
                n_workers=int(number),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,
                silence_logs="ERROR",
            )


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as problem:
        raise BismutError("A cluster needs Dask, which is not installed here: pip install 'bismut[cluster]'.") from problem
    return distributed


class _Crew:
    """The tasks of one run."""

    def __init__(self, client: Any, data: bytes, ours: bool, patience: float):
        from bismut.executors import delivery  # needs Dask

        self._delivery = delivery
        self._client, self._heard = client, queue.SimpleQueue()
        self._run = f"bismut-{uuid.uuid4().hex}"
        self._futures: dict[int, Any] = {}
        self._places: dict[int, str] = {}
        self._threads: dict[str, int] = {}
        self._ending: list[threading.Thread] = []
        self._looked, self._stopped, self._told = 0.0, False, set()
        self._begun, self._patience = time.monotonic(), patience
        self._seen, self._complained = self._begun, False
        self._deliver(delivery.Delivery(self._run, data, ours))
        client.subscribe_topic(self._run, lambda event: self._heard.put(pickle.loads(event[1])))

    def _deliver(self, work: Any) -> None:
        """To all who are there; one that dies just now spoils that, and it is done again without it."""
        for attempt in range(ATTEMPTS):
            try:
                self._client.register_plugin(work)
                return
            except OSError as problem:
                if attempt == ATTEMPTS - 1:
                    raise ProcessError(f"Workers of {self._client.scheduler.address} cannot be reached: {problem}") from problem
                time.sleep(_LOOK)

    def room(self) -> int:
        self._look()
        return 2 * sum(self._threads.values()) - len(self._futures)

    def give(self, ticket: int, job: Any) -> None:
        every = max(0.5, sum(self._threads.values()) / _NEWS)
        task = self._client.submit(self._delivery.do, self._run, ticket, job, every, key=self._name(ticket), pure=False, priority=-ticket)
        self._futures[ticket] = task
        asyncio.run_coroutine_threadsafe(self._fetch(ticket, task), self._client.loop.asyncio_loop)

    async def _fetch(self, ticket: int, future: Any) -> None:
        """Wait for a task and for what it came to, in the loop of the client: a worker may hang when it has done its work and is asked for it."""
        try:
            kind, content = await self._client.gather(future, asynchronous=True)
        except (Exception, asyncio.CancelledError) as problem:
            kind, content = "lost", f"{type(problem).__name__}: {problem}"
        self._heard.put((kind, ticket, content))

    def news(self, seconds: float) -> list[News]:
        self._look()
        found: list[News] = []
        try:
            found += self._read(self._heard.get(timeout=seconds))
            while True:
                found += self._read(self._heard.get_nowait())
        except queue.Empty:
            return found

    def end(self, ticket: int) -> None:
        self._client.cancel([self._futures[ticket]], reason="hung")
        if place := self._places.get(ticket):
            self._ending.append(threading.Thread(target=self._kill, args=(place,), daemon=True))  # the others need not wait
            self._ending[-1].start()

    def _kill(self, place: str) -> None:
        """End a process that hangs, by its nanny, who then begins another; `restart_workers` asks politely first, and waits for four seconds."""
        self._client.run(self._delivery.kill, workers=[place], nanny=True, on_error="ignore")
        limit = time.monotonic() + _ENDING
        while place in self._client.nthreads():
            if time.monotonic() > limit:  # it has no nanny: nothing more is given to it
                self._client.restart_workers([place], timeout=_ENDING, raise_for_error=False)
                return
            time.sleep(0.01)

    def stop(self) -> None:
        self._stopped = True
        for place in [place for place in self._threads if place not in self._told]:
            self._told.add(place)
            asked = self._ask(self._client.run, self._delivery.stop, self._run, workers=[place], wait=False, on_error="ignore")
            asked.add_done_callback(partial(self._answered, place))

    def _answered(self, place: str, asked: Future) -> None:
        """A worker that could not be reached is told again."""
        if asked.cancelled() or asked.exception() is not None or place not in asked.result():
            self._told.discard(place)

    def _ask(self, verb: Callable[..., Any], *what: Any, **how: Any) -> Future:
        """Ask for something in the loop of the client: who hangs never answers, and nobody should wait for that here."""

        async def asked() -> Any:
            return await verb(*what, **how)

        return asyncio.run_coroutine_threadsafe(asked(), self._client.loop.asyncio_loop)

    def forget(self, ticket: int) -> None:
        self._places.pop(ticket, None)
        if future := self._futures.pop(ticket, None):
            future.release()

    def leave(self) -> None:
        for ending in self._ending:
            ending.join(_ENDING)
        if self._client.status == "running":
            self._client.cancel(list(self._futures.values()), reason="the run has ended")
            self._client.unsubscribe_topic(self._run)
            wait([self._ask(self._client.unregister_worker_plugin, self._run)], timeout=_PARTING)
        self._futures.clear()

    def _look(self) -> None:
        """Hear who is there; which jobs were at a worker that is gone, and wait for another; which are first at one that has not said so."""
        if time.monotonic() - self._looked < _LOOK:
            return
        if self._client.status not in ("running", "connecting"):
            raise ProcessError(f"The cluster is lost ({self._client.status}). {_KEPT}")
        asked = self._ask(lambda: asyncio.gather(self._client.nthreads(), self._client.processing()))
        try:
            self._threads, processing = asked.result(_ANSWER)
        except OSError as problem:  # or time is up: whoever wants to stop is to be heard while a scheduler says nothing
            asked.cancel()
            if time.monotonic() - max(self._looked, self._begun) > self._patience:
                silent = f"The scheduler at {self._client.scheduler.address} has not answered for {self._patience:g} s."
                raise ProcessError(f"{silent} {_KEPT}") from problem
            return
        self._looked = time.monotonic()
        for ticket in [ticket for ticket, place in self._places.items() if place not in self._threads]:
            del self._places[ticket]
            self._heard.put(("waiting", ticket, None))
        names = {self._name(ticket): ticket for ticket in self._futures}
        given = {place: [names[key] for key in keys if key in names] for place, keys in processing.items()}
        for place, tickets in given.items():
            if tickets and place not in self._places.values():
                self._heard.put(("begun", min(tickets), place))
        if not self._threads and self._stopped:
            for ticket in self._futures:
                self._heard.put(("lost", ticket, "All workers are gone."))
        self._complain()

    def _complain(self) -> None:
        """Say once that nobody is there to work: queues may take their time, but somebody may have forgotten to begin workers."""
        self._seen = time.monotonic() if self._threads else self._seen
        if time.monotonic() - self._seen > _NOBODY and not self._complained:
            self._complained = True
            print(f"bismut: {self._client.scheduler.address} has had no workers for {_NOBODY:g} s; the run waits for them.", file=sys.stderr)

    def _name(self, ticket: int) -> str:
        return f"{self._run}-{ticket}"

    def _read(self, heard: tuple) -> list[News]:
        kind, ticket, content = heard
        if kind == "begun" and ticket in self._futures:  # what a job came to may arrive before the news that it was begun
            self._places[ticket] = content
        return [News(kind, ticket, content)]
