"""every job is done exactly once, whoever dies, hangs or fails on the way

Real processes, real SIGKILLs and SIGSTOPs; the work is without JAX, so that a worker is there in a moment.
"""

import asyncio
import os
import random
import re
import signal
import socket
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from bismut.errors import BismutError, DomainError, ProcessError
from bismut.executors import Channel, Dask, Failed, Processes, Threads
from bismut.executors.processes import _Process, _ProcessPool
from bismut.executors.supervision import Event, supervised
from bismut.executors.worker import packed
from tests.executors.works import Errand

JOBS = range(6)
PATIENCE = 2  # seconds, in which a process begins on a busy machine


@pytest.fixture(scope="module")
def processes():
    with Processes(2, patience=PATIENCE) as executor:
        yield executor


@pytest.fixture
def cluster(local_cluster, monkeypatch):
    monkeypatch.setattr(local_cluster, "patience", PATIENCE)
    return local_cluster


@pytest.fixture(params=["threads", "processes", "cluster"])
def executor(request):
    return Threads(2) if request.param == "threads" else request.getfixturevalue(request.param)


@pytest.fixture(params=["processes", "cluster"])
def elsewhere(request):
    return request.getfixturevalue(request.param)


def squares(found):
    return {number: number**2 for number in JOBS} == dict(found)


def test_runs_on_threads_do_not_wait_for_each_other():
    """A run of short jobs beside one of long jobs, and a run within a job of another; each has threads of its own."""
    release, began = threading.Event(), threading.Event()

    def long(job, channel):
        began.set()
        assert release.wait(30)

    other = threading.Thread(target=lambda: list(Threads(2).each(long, range(6), Channel())))
    other.start()
    assert began.wait(30)
    within = lambda job, channel: [found for _, found in Threads(2).each(lambda job, channel: job, range(3), Channel())]
    found = dict(Threads(2).each(within, range(4), Channel()))
    assert {job: sorted(inner) for job, inner in found.items()} == {job: [0, 1, 2] for job in range(4)}
    release.set()
    other.join()
    waiting = [thread for thread in threading.enumerate() if thread.name.startswith("bismut_")]
    assert len(waiting) <= 2  # those of the last run


def test_whoever_has_seen_enough_waits_for_no_job_that_was_not_begun():
    done = []
    jobs = Threads(2).each(lambda job, channel: done.append(job), range(100), Channel())
    next(jobs)
    jobs.close()
    assert len(done) <= 6


def test_every_job_is_done_once_and_heard_of(executor, tmp_path):
    work, heard = Errand(str(tmp_path)), []
    assert squares(executor.each(work, JOBS, Channel(send=heard.append)))
    assert work.begun() == dict.fromkeys(JOBS, 1)
    assert set(heard) <= set(JOBS)
    assert executor is not Threads or sorted(heard) == list(JOBS)


def test_a_worker_that_dies_or_hangs_costs_its_job_once_more(elsewhere, tmp_path):
    for trouble in ("die", "hang"):
        folder = tmp_path / trouble
        folder.mkdir()
        work = Errand(str(folder), trouble)
        assert squares(elsewhere.each(work, JOBS, Channel())), trouble
        begun = work.begun()
        assert begun.pop(work.where) == 2
        unfetched = 1 if isinstance(elsewhere, Dask) else 0  # of a cluster, what its worker had done and nobody had fetched yet
        assert sum(begun.values()) <= len(begun) + unfetched


def test_a_hung_worker_is_found_though_it_never_said_that_it_had_begun(cluster, tmp_path):
    """The events of a job that was done before come late, and those of the one that hangs never."""
    work = Errand(str(tmp_path), "hang")
    pool = deaf(cluster, work)
    for address in cluster._client.nthreads():
        pool._heard.put(("begun", 0, address))
    assert squares(supervised(pool, JOBS, Channel(), attempts=3, patience=1))
    pool.disconnect()


def test_what_is_seen_while_somebody_asks_for_room_is_news(cluster, tmp_path):
    pool, events = deaf(cluster, Errand(str(tmp_path), seconds=60)), []
    pool.submit(1, 0)
    while not events:
        pool._looked = 0.0
        pool.free_slots()
        pool._looked = time.monotonic()
        events = pool.events(0.05)
    assert [(kind, job_id) for kind, job_id, _ in events] == [("begun", 1)]
    pool.disconnect()


def test_nobody_waits_for_a_hung_worker_to_hear_that_it_is_to_stop(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("bismut.executors.dask_executor._DISCONNECT", 0.5)
    pool = cluster._worker_pool(packed(Errand(str(tmp_path), "hang")))
    assert pool.free_slots()
    pool.submit(1, 1)
    while not (hung := [int(file.read_text()) for file in tmp_path.glob("1") if file.read_text().strip()]):
        time.sleep(0.01)
    while "T" not in Path(f"/proc/{hung[0]}/stat").read_text().rpartition(")")[2].split()[0]:
        time.sleep(0.01)
    clock = time.monotonic()
    pool.stop()
    pool.disconnect()
    assert time.monotonic() - clock < 10
    os.kill(hung[0], signal.SIGKILL)


def test_a_scheduler_that_says_nothing_is_not_waited_for_without_end(cluster, tmp_path, monkeypatch):
    """Whoever asks meanwhile for something else is heard, and in the end it is said."""
    pool = cluster._worker_pool(packed(Errand(str(tmp_path))))
    with monkeypatch.context() as patched:
        patched.setattr("bismut.executors.dask_executor._ANSWER", 0.1)
        patched.setattr(pool._client, "processing", lambda: asyncio.sleep(60))
        assert pool.free_slots() == 0
        pool._begun -= 10
        with pytest.raises(ProcessError, match=r"has not answered for \d s\. What was committed is kept"):
            pool.free_slots()
    assert pool.free_slots() > 0
    pool.disconnect()


def test_a_process_that_cannot_be_killed_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("bismut.executors.processes._DYING", 0.1)
    process = _Process(1, SimpleQueue())
    with monkeypatch.context() as patched:
        patched.setattr(process._process, "kill", lambda: None)
        os.kill(process.pid, signal.SIGSTOP)
        process.end()
    process.end()


def test_what_cannot_travel_is_told_of_at_once(processes):
    """Neither a result that cannot be pickled in a worker nor one that cannot be opened here leaves anybody waiting."""
    clock = time.monotonic()
    found = dict(processes.each(lambda job, channel: Closed() if job else (_ for _ in ()), [0, 1], Channel()))
    assert "cannot pickle 'generator' object" in found[0].why
    assert "died" in found[1].why
    assert time.monotonic() - clock < 3 * processes.patience


class Closed:
    """Can be opened where it was made, and nowhere else."""

    def __reduce__(self):
        return _open, ()


class Scripted:
    """A pool whose events are written down."""

    def __init__(self, *events):
        self.scripted, self.given, self.ended = list(events), 0, []

    def free_slots(self):
        return 3 - self.given

    def submit(self, job_id, job):
        self.given += 1

    def events(self, seconds):
        return self.scripted.pop(0)

    def kill(self, job_id):
        self.ended.append(job_id)

    def stop(self):
        raise AssertionError

    release = disconnect = lambda self, *job_id: None


def test_a_driver_that_was_away_first_listens():
    """What was said while it was busy with a result, or stopped, counts; nobody is taken for hung before."""
    begun, done = (lambda job_id: Event("begun", job_id)), (lambda job_id: Event("done", job_id, "it"))
    for later in ([[done(2)]], [[], [done(2)]]):
        pool, found = Scripted([begun(1), begun(2), done(1)], *later), []
        for job, _ in supervised(pool, ["a", "b"], Channel(), attempts=1, patience=0.2):
            found.append(job)
            time.sleep(0.5)
        assert (found, pool.ended) == (["a", "b"], [])


def test_what_was_done_when_another_worker_cannot_begin_is_not_lost():
    pool = _ProcessPool(2)
    good, bad = (SimpleNamespace(job_id=job_id, pid=job_id, end=lambda: None) for job_id in (1, 2))
    pool._all += [good, bad]
    pool._heard.put((good, "done", 1, "it"))
    pool._heard.put((bad, "gone", False, 1))
    assert [(kind, job_id) for kind, job_id, _ in pool.events(0)] == [("done", 1), ("refused", 2)]


def test_processes_work_for_one_run_at_a_time(processes, tmp_path):
    """Tickets of two runs would be the same, and so would be what is brought back on them."""
    first = processes.each(Errand(str(tmp_path), seconds=0.1), JOBS, Channel())
    found = dict([next(first)])
    with pytest.raises(ProcessError, match="at work for another run"):
        next(processes.each(Errand(str(tmp_path)), JOBS, Channel()))
    assert squares(found | dict(first))
    assert squares(processes.each(Errand(str(tmp_path)), JOBS, Channel()))


def deaf(cluster, work):
    """A pool that hears nothing of what workers say on their way."""
    pool = cluster._worker_pool(packed(work))
    pool._client.unsubscribe_topic(pool._run)
    pool._client.subscribe_topic(pool._run, lambda _: None)
    return pool


def test_a_job_that_always_fails_is_tried_some_times_and_the_others_are_done(executor, tmp_path):
    work = Errand(str(tmp_path), "raise", always=True)
    found = dict(executor.each(work, JOBS, Channel()))
    failed = found.pop(work.where)
    assert isinstance(failed, Failed)
    assert failed.why.startswith("ValueError: number 1 is not for me\n")
    assert re.search(r"works.py, line \d+, in __call__$", failed.why)  # where it was raised, and no pages of how it came there
    assert not failed.lost
    tries = 1 if isinstance(executor, Threads) else 3
    assert failed.attempts == tries == work.begun()[work.where]
    assert found == {number: number**2 for number in JOBS if number != work.where}


def test_a_job_that_always_kills_its_worker_is_given_up(processes, tmp_path):
    work = Errand(str(tmp_path), "die", always=True)
    found = dict(processes.each(work, JOBS, Channel()))
    assert "signal 9" in found[work.where].why
    assert found[work.where].lost
    assert len(found) == len(JOBS)


def test_workers_that_are_killed_at_random_moments_are_few(tmp_path):
    """As they begin, at work and in between: every job is done or given up after three attempts, so the number of workers is bounded."""
    work, moments, ended = Errand(str(tmp_path), seconds=0.1), random.Random(3), threading.Event()
    killed = []
    with Processes(2) as executor:

        def kill():
            while not ended.wait(0.25 * moments.random()):
                if there := list(executor._pool._all):
                    killed.append(moments.choice(there))
                    killed[-1]._process.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            found = dict(executor.each(work, JOBS, Channel()))
        finally:
            ended.set()
            killer.join()
    assert len(killed) >= 3
    assert set(found) == set(JOBS)
    assert all(value.attempts == 3 and value.lost if isinstance(value, Failed) else value == job**2 for job, value in found.items())
    assert max(work.begun().values(), default=0) <= 3


def test_few_jobs_are_begun_ahead_and_those_who_are_told_stop(executor, tmp_path):
    drawn, found = [], []

    def jobs():
        for number in range(1000):
            drawn.append(number)
            yield number

    work = Errand(str(tmp_path), seconds=0.05)
    for job, value in executor.each(work, jobs(), Channel(lambda: len(found) >= 4)):
        found.append((job, value))
        assert len(drawn) - len(found) <= 5
    assert {value for _, value in found} <= {job**2 for job, _ in found} | {"stopped"}
    assert len(found) <= 4 + 5, "it ended"


def test_long_jobs_hear_that_they_are_to_stop(executor, tmp_path):
    """Jobs of a minute are told to stop when they have begun, and return at once what they have."""
    work = Errand(str(tmp_path), seconds=60)
    found = dict(executor.each(work, [0, 1], Channel(lambda: len(work.begun()) == 2)))
    assert found == {0: "stopped", 1: "stopped"}


def test_whoever_is_at_work_when_nobody_waits_any_more_is_ended(processes, tmp_path):
    work = Errand(str(tmp_path), "hang", where=0)
    running = processes.each(work, [0, 1], Channel())
    assert next(running) == (1, 1)
    running.close()
    assert squares(processes.each(Errand(str(tmp_path)), JOBS, Channel()))


def test_work_that_cannot_be_opened_is_refused_at_once(elsewhere):
    with pytest.raises(ProcessError, match=r"cannot take this work.*no such thing"):
        list(elsewhere.each(Unopened(), JOBS, Channel()))


class Unopened:
    def __call__(self, job, channel):
        raise AssertionError

    def __reduce__(self):
        return _open, ()


def _open():
    raise ImportError("no such thing")


def test_results_that_were_taken_over_are_not_computed_again(cluster, tmp_path):
    """A worker dies after its results were fetched, while others are still being computed."""
    work = Errand(str(tmp_path), seconds=0.3)
    found, killed = {}, None
    for job, value in cluster.each(work, JOBS, Channel()):
        found[job] = value
        if killed is None:
            time.sleep(0.5)  # another one is under way
            killed = int((tmp_path / str(job)).read_text())
            os.kill(killed, signal.SIGKILL)
    assert squares(found)
    begun = work.begun()
    assert sum(begun.values()) <= len(JOBS) + 2, "at most what it had begun, and what was there but not fetched"
    assert begun[next(iter(found))] == 1


@pytest.mark.parametrize("number", [1.5, 0, -1, True, "2"])
def test_a_number_of_workers_is_whole_and_positive(number):
    for make in (Threads, Processes, lambda n: Processes(attempts=n)):
        with pytest.raises(DomainError, match=f"must be a whole number ≥ 1, got {number!r}"):
            make(number)
    with pytest.raises(DomainError, match="patience must be a positive number of seconds, got 0"):
        Processes(patience=0)


def test_a_scheduler_that_is_not_there_is_told_of_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    clock = time.monotonic()
    with pytest.raises(BismutError, match=rf"There is no cluster at tcp://127.0.0.1:{port}: .*refused.* Start one with `dask scheduler`"):
        Dask(f"tcp://127.0.0.1:{port}")
    assert time.monotonic() - clock < 10


def test_somebody_who_waits_for_a_scheduler_is_told_so(capsys):
    """A port at which something listens that is no scheduler, and never answers."""
    dask = pytest.importorskip("dask")
    with socket.create_server(("127.0.0.1", 0)) as server, dask.config.set({"distributed.comm.timeouts.connect": "1.2s"}):
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BismutError, match=f"There is no cluster at {address}: what listens there does not answer"):
            Dask(address)
        assert f"bismut: waiting for the scheduler at {address} (1.2 s)." in capsys.readouterr().err


@pytest.mark.parametrize("reply", [b"HTTP/1.0 400 Bad Request\r\n\r\n" + b"x" * 1000, bytes(4096), b"\1" + bytes(7) + b"\xff" * 7 + b"\x0f"])
def test_a_server_that_is_no_scheduler_is_told_from_one(reply):
    """Dask takes its answer for lengths, and would allocate exabytes."""
    pytest.importorskip("dask")

    def answer(server):
        while True:
            try:
                caller, _ = server.accept()
            except OSError:
                return
            with caller:
                caller.recv(100)
                caller.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BismutError, match=f"There is no cluster at {address}: .* Start one with `dask scheduler`"):
            Dask(address)
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "where",
    [
        5,
        None,
        ["tcp://127.0.0.1:1"],
        "",
        "tcp://127.0.0.1:99999",
        "tls://127.0.0.1:-1",
        "tcp://127.0.0.1",
        "tcp://[::1",
        "http://127.0.0.1:1",
        "inproc://x",
    ],
)
def test_what_is_no_cluster_is_refused_by_its_form(where):
    pytest.importorskip("dask")
    with pytest.raises(DomainError, match=r"^A cluster is tcp://host:port, tls://host:port.* got "):
        Dask(where)


def test_tls_without_certificates_says_which_are_missing():
    pytest.importorskip("dask")
    with pytest.raises(BismutError, match=r"needs certificates.*DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT"):
        Dask("tls://127.0.0.1:8786")
