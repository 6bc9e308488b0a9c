"""A signal, an error or somebody else at the worst moment: nobody is locked out, nothing is lost, and nothing is done to what is another's."""

import errno
import os
import signal
import threading

import numpy as np
import pytest

import bismut as bm
from bismut.ensembles import request
from bismut.ensembles.interruption import Interrupted, Stop
from bismut.errors import StoreError, WriteError
from bismut.operating_system import deferred_signals
from bismut.store import claim, open_run, resume, resume_run, verify_data
from bismut.store import run_writer as writing
from bismut.store.repair import repair
from bismut.store.run_reader import sibling
from tests.store import writers


@pytest.fixture
def handlers():
    """Signals are heard as before when the test has ended."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("within", [deferred_signals, Stop])
def test_a_signal_while_handlers_are_put_back_leaves_none_behind(handlers, monkeypatch, within):
    """Ctrl-C after its own handler is back and before that of SIGTERM is: SIGTERM went to one that nobody asked any more."""
    heard, real = [], signal.signal
    real(signal.SIGTERM, lambda number, _: heard.append(number))

    def interrupted(number, handler):
        before = real(number, handler)
        if handler is signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)
        return before

    monkeypatch.setattr(signal, "signal", interrupted)
    with pytest.raises(KeyboardInterrupt), within():
        pass
    monkeypatch.undo()
    signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_who_gives_a_folder_up_leaves_the_lock_of_the_next_alone(tmp_path, monkeypatch):
    """Between the removal of a folder and the end of its lock somebody else makes it again."""
    first, later, real = claim(tmp_path / "a"), [], writing.remove_run
    with monkeypatch.context() as patched:
        patched.setattr(writing, "remove_run", lambda folder: (real(folder), later.append(claim(folder))))
        first.close()
    with later[0] as second:
        with pytest.raises(StoreError, match="is being written by"):
            claim(tmp_path / "a")
        second.commit(0, 0, {})


def test_a_disk_that_takes_nothing_more_is_the_error_that_is_seen(tmp_path, monkeypatch):
    """It lets nothing be removed, either; when it does again, the name is free."""

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    run = claim(tmp_path / "a")
    with monkeypatch.context() as patched:
        for name in ("write", "unlink", "rmdir", "rename", "replace"):
            patched.setattr(os, name, refuse)
        with pytest.raises(WriteError, match="Read-only"), run:
            run.commit(0, 0, writers.arrays(0))
    writers.saved(tmp_path / "a", 1.0, overwrite=False)


def test_a_replacement_that_fails_half_way_is_made_good(tmp_path, monkeypatch):
    """The old run steps sibling and the new one cannot take its place: the old one is there until the new one can."""
    writers.saved(tmp_path / "a", 1.0)
    real = os.rename

    def refuse(source, target):
        if str(source).endswith(".new"):
            raise OSError(errno.EIO, "Input/output error")
        return real(source, target)

    with claim(tmp_path / "a", overwrite=True) as run:
        with monkeypatch.context() as patched:
            patched.setattr(os, "rename", refuse)
            for block in range(2):
                with pytest.raises(WriteError, match="Input/output"):
                    run.commit(0, block, writers.arrays(block))
        assert open_run(sibling(tmp_path / "a", "old")).results().attributes["number"] == 1.0
        run.commit(0, 2, writers.arrays(2))
        run.finish(results=writers.results(2.0))
    assert list(open_run(tmp_path / "a").blocks) == [(0, 0), (0, 1), (0, 2)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_folder_is_not_given_up_in_the_middle_of_a_commit(tmp_path, monkeypatch):
    """Another thread commits: a lock that ended before would let somebody else write to the same manifest."""
    run, begun, go_on, real = claim(tmp_path / "a"), threading.Event(), threading.Event(), writing.write_files
    run.commit(0, 0, {})
    monkeypatch.setattr(writing, "write_files", lambda *what: (begun.set(), go_on.wait(10), real(*what))[2])
    commits, closes = threading.Thread(target=run.commit, args=(0, 1, {})), threading.Thread(target=run.close)
    commits.start()
    assert begun.wait(10)
    closes.start()
    closes.join(0.3)
    assert closes.is_alive()
    go_on.set()
    commits.join()
    closes.join()
    assert list(open_run(tmp_path / "a").blocks) == [(0, 0), (0, 1)]
    with pytest.raises(StoreError, match="was released"):
        run.commit(0, 2, {})


SCHEME = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q))
RUN = {"step": 0.1, "trajectories": 24, "block": 8, "observe": {"energy": bm.energy}, "seed": 1}


def asked(steps: int):
    return SCHEME, SCHEME.start(np.ones(1), velocity=np.zeros(1)), RUN | {"steps": steps}


def test_a_run_that_somebody_else_has_extended_meanwhile_is_refused_and_whole(tmp_path, monkeypatch):
    """Two go on with one run; the second has compared it before the first claimed it, and comes to its turn when the first has ended."""
    path, (scheme, start, settings), real = tmp_path / "a", asked(3), resume.check_sound
    bm.simulate(scheme, start, **settings, store=path)

    def check(folder):
        real(folder)
        monkeypatch.undo()
        bm.simulate(scheme, start, **asked(9)[2], store=path, extend=True)

    monkeypatch.setattr(resume, "check_sound", check)
    with pytest.raises(StoreError, match="holds another run"):
        resume_run(path, request(scheme, start, **asked(5)[2]), command="", extend=True)
    stored = open_run(path)
    assert (stored.state, stored.asked["steps"]) == ("complete", 9)


class Interrupting:
    """An executor: one job, then Ctrl-C."""

    remote = False

    def each(self, work, jobs, line):
        yield (first := next(jobs)), work(first, line)
        signal.raise_signal(signal.SIGINT)
        assert line.stopped()
        yield (second := next(jobs)), work(second, line)


def test_a_repair_hears_ctrl_c_and_keeps_what_it_has(tmp_path):
    """Blocks were computed to their end, however long that took; what was not, a resumed run computes."""
    path, (scheme, start, settings) = tmp_path / "a", asked(3)
    whole = bm.simulate(scheme, start, **settings, store=path)
    with claim(path, resume=True) as run:
        run.commit_documents({}, state="interrupted")
    for block in (0, 2):
        (path / "blocks" / f"0-{block}.zip").write_bytes(b"")
    with pytest.raises(Interrupted):
        repair(path, lambda stored: request(scheme, start, **settings), command="", executor=Interrupting())
    assert verify_data(path).ok
    assert (open_run(path).state, sorted(open_run(path).blocks)) == ("interrupted", [(0, 0), (0, 1)])
    again = bm.simulate(scheme, start, **settings, store=path, progress=False)
    np.testing.assert_array_equal(again.energy.mean, whole.energy.mean)
