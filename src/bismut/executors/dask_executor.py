"""Jobs on a cluster of Dask.distributed.

Few tasks are in flight, twice as many as the cluster has threads. The work is sent once to every worker, also to those that join later
(`dask_plugin`). A result is fetched when it is ready, handed on, and only then released: a worker that dies later costs nothing. Dask replaces a
worker that dies before; one that hangs looks alive to Dask and is killed by us.
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
from bismut.executors.dask_connect import check_address, check_form, probe, waiting
from bismut.executors.executor import ATTEMPTS, PATIENCE
from bismut.executors.supervision import Event, RemoteExecutor, WorkerPool, drain

_LOOK = 1.0  # seconds between two queries for the workers
_MESSAGES = 200  # a second that the scheduler is asked to pass on
_NO_WORKERS = 30.0  # seconds without a worker after which a message is printed
_KILLING = 10.0  # seconds for a worker that hangs to be killed, and for that to be noticed
_ANSWER = 5.0  # seconds for a scheduler to answer before other events are read
_DISCONNECT = 5.0  # seconds for workers to learn that a run has ended

_STORED = "What was committed is kept, and the run can be resumed."


class Dask(RemoteExecutor):
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
        """Leave the cluster; one that was started here ends."""
        while self._own:
            self._own.pop(0).close()

    def _worker_pool(self, data: bytes) -> WorkerPool:
        return _DaskPool(self._client, data, len(self._own) > 1, self.patience)

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
                    probe(address, seconds)
                client = distributed.Client(where, set_as_default=False)
        except BaseException as problem:
            self.close()
            if isinstance(problem, BismutError) or not isinstance(problem, Exception):
                raise
            # Dask raises anything from struct.error to MemoryError for the answer of a server that is no scheduler.
            readable = isinstance(problem, OSError) and str(problem)
            why = str(problem) if readable else "what listens there does not answer as a scheduler does"
            raise BismutError(f"There is no cluster at {address}: {why}. Start one with `dask scheduler` and `dask worker {address}`.") from problem
        self._own.insert(0, client)
        return client

    @staticmethod
    def _local(where: str) -> Any:
        """So many processes with one thread each, reachable from this machine only."""
        name, _, number = where.partition(":")
        if name != "local" or not number.isdigit() or int(number) < 1:
            raise DomainError(f"A cluster is tcp://host:port, tls://host:port or local:N, got {where!r}.")
        import dask

        # Profiling the stack a hundred times a second costs some percent, and is not used here.
        quiet = {"distributed.logging.distributed": "error", "distributed.worker.profile.enabled": False}
        # One set of threads each; spawned, never forked, because a forked JAX hangs.
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


class _DaskPool:
    """The tasks of one run."""

    def __init__(self, client: Any, data: bytes, ours: bool, patience: float):
        from bismut.executors import dask_plugin

        self._plugin = dask_plugin
        self._client, self._heard = client, queue.SimpleQueue()
        self._run = f"bismut-{uuid.uuid4().hex}"
        self._futures: dict[int, Any] = {}
        self._places: dict[int, str] = {}
        self._threads: dict[str, int] = {}
        self._ending: list[threading.Thread] = []
        self._looked, self._stopped, self._asked = 0.0, False, set()
        self._begun, self._patience = time.monotonic(), patience
        self._last_worker, self._warned = self._begun, False
        self._deliver(dask_plugin.WorkPlugin(self._run, data, ours))
        client.subscribe_topic(self._run, lambda event: self._heard.put(pickle.loads(event[1])))

    def _deliver(self, work: Any) -> None:
        """To all workers; one that dies meanwhile makes that fail, and it is repeated without it."""
        for attempt in range(ATTEMPTS):
            try:
                self._client.register_plugin(work)
                return
            except OSError as problem:
                if attempt == ATTEMPTS - 1:
                    raise ProcessError(f"Workers of {self._client.scheduler.address} cannot be reached: {problem}") from problem
                time.sleep(_LOOK)

    def free_slots(self) -> int:
        self._look()
        return 2 * sum(self._threads.values()) - len(self._futures)

    def submit(self, job_id: int, job: Any) -> None:
        every = max(0.5, sum(self._threads.values()) / _MESSAGES)
        task = self._client.submit(self._plugin.do, self._run, job_id, job, every, key=self._name(job_id), pure=False, priority=-job_id)
        self._futures[job_id] = task
        asyncio.run_coroutine_threadsafe(self._fetch(job_id, task), self._client.loop.asyncio_loop)

    async def _fetch(self, job_id: int, future: Any) -> None:
        """Wait for a task and its result in the loop of the client: a worker may hang when its result is fetched."""
        try:
            kind, content = await self._client.gather(future, asynchronous=True)
        except (Exception, asyncio.CancelledError) as problem:
            kind, content = "lost", f"{type(problem).__name__}: {problem}"
        self._heard.put((kind, job_id, content))

    def events(self, seconds: float) -> list[Event]:
        self._look()
        return drain(self._heard, seconds, self._read)

    def kill(self, job_id: int) -> None:
        self._client.cancel([self._futures[job_id]], reason="hung")
        if place := self._places.get(job_id):
            self._ending.append(threading.Thread(target=self._kill, args=(place,), daemon=True))  # without blocking the others
            self._ending[-1].start()

    def _kill(self, place: str) -> None:
        """Kill a process that hangs through its nanny, which then starts another; `restart_workers` would wait four seconds for it."""
        self._client.run(self._plugin.kill, workers=[place], nanny=True, on_error="ignore")
        limit = time.monotonic() + _KILLING
        while place in self._client.nthreads():
            if time.monotonic() > limit:  # it has no nanny: it gets no more jobs
                self._client.restart_workers([place], timeout=_KILLING, raise_for_error=False)
                return
            time.sleep(0.01)

    def stop(self) -> None:
        self._stopped = True
        for place in [place for place in self._threads if place not in self._asked]:
            self._asked.add(place)
            asked = self._ask(self._client.run, self._plugin.stop, self._run, workers=[place], wait=False, on_error="ignore")
            asked.add_done_callback(partial(self._answered, place))

    def _answered(self, place: str, asked: Future) -> None:
        """A worker that could not be reached is asked to stop again. A client that was closed meanwhile answers None."""
        if asked.cancelled() or asked.exception() is not None or place not in (asked.result() or {}):
            self._asked.discard(place)

    def _ask(self, verb: Callable[..., Any], *what: Any, **how: Any) -> Future:
        """Call a coroutine in the loop of the client: one that hangs never returns, and must not block the driver."""

        async def asked() -> Any:
            return await verb(*what, **how)

        return asyncio.run_coroutine_threadsafe(asked(), self._client.loop.asyncio_loop)

    def release(self, job_id: int) -> None:
        self._places.pop(job_id, None)
        if future := self._futures.pop(job_id, None):
            future.release()

    def disconnect(self) -> None:
        for ending in self._ending:
            ending.join(_KILLING)
        if self._client.status == "running":
            self._client.cancel(list(self._futures.values()), reason="the run has ended")
            self._client.unsubscribe_topic(self._run)
            wait([self._ask(self._client.unregister_worker_plugin, self._run)], timeout=_DISCONNECT)
        self._futures.clear()

    def _look(self) -> None:
        """Query the workers: which jobs were on one that is gone and wait for another; which are first on one that has not reported them."""
        if time.monotonic() - self._looked < _LOOK:
            return
        if self._client.status not in ("running", "connecting"):
            raise ProcessError(f"The cluster is lost ({self._client.status}). {_STORED}")
        asked = self._ask(lambda: asyncio.gather(self._client.nthreads(), self._client.processing()))
        try:
            self._threads, processing = asked.result(_ANSWER)
        except OSError as problem:  # or a timeout: a request to stop must be noticed while a scheduler is silent
            asked.cancel()
            if time.monotonic() - max(self._looked, self._begun) > self._patience:
                silent = f"The scheduler at {self._client.scheduler.address} has not answered for {self._patience:g} s."
                raise ProcessError(f"{silent} {_STORED}") from problem
            return
        self._looked = time.monotonic()
        for job_id in [job_id for job_id, place in self._places.items() if place not in self._threads]:
            del self._places[job_id]
            self._heard.put(("waiting", job_id, None))
        names = {self._name(job_id): job_id for job_id in self._futures}
        assigned = {place: [names[key] for key in keys if key in names] for place, keys in processing.items()}
        for place, job_ids in assigned.items():
            if job_ids and place not in self._places.values():
                self._heard.put(("begun", min(job_ids), place))
        if not self._threads and self._stopped:
            for job_id in self._futures:
                self._heard.put(("lost", job_id, "All workers are gone."))
        self._warn_without_workers()

    def _warn_without_workers(self) -> None:
        """Print once that there are no workers: a queue may take its time, but they may not have been started at all."""
        self._last_worker = time.monotonic() if self._threads else self._last_worker
        if time.monotonic() - self._last_worker > _NO_WORKERS and not self._warned:
            self._warned = True
            print(f"bismut: {self._client.scheduler.address} has had no workers for {_NO_WORKERS:g} s; the run waits for them.", file=sys.stderr)

    def _name(self, job_id: int) -> str:
        return f"{self._run}-{job_id}"

    def _read(self, heard: tuple) -> list[Event]:
        kind, job_id, content = heard
        if kind == "begun" and job_id in self._futures:  # a result may arrive before the event that the job was begun
            self._places[job_id] = content
        return [Event(kind, job_id, content)]
