"""A disk that is full, read-only or in the way costs no result."""

import errno
import os
import resource
from functools import partial

import numpy as np
import pytest

import bismut as bm
from bismut.errors import WriteError
from bismut.store import claim, open_run, verify_data
from tests.store import writers


@pytest.fixture(scope="module")
def result():
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q))
    start = scheme.start(np.ones(1), velocity=np.zeros(1))
    return bm.simulate(scheme, start, step=0.1, steps=3, trajectories=4, observe={"energy": bm.energy})


def test_a_full_disk_keeps_what_was_committed(mounted):
    """Blocks are committed until there is no room: the error says so, all before it are whole, and with room the run goes on."""
    disk = mounted("size=3m")
    with pytest.raises(WriteError, match="No space left"):
        _commit_many(disk / "a")
    stored = open_run(disk / "a")
    count = len(stored.blocks)
    assert 10 < count < 100
    assert verify_data(disk / "a").ok
    os.system(f"mount -o remount,size=9m {disk}")
    with claim(disk / "a", resume=True) as run:
        run.commit(0, count, writers.arrays(count, 5000))
        run.finish(results=writers.results(1.0))
    for block in range(count + 1):
        np.testing.assert_equal(open_run(disk / "a").block(0, block), writers.arrays(block, 5000))
    assert not list((disk / "a").rglob("*.[0-9]*"))


def _commit_many(path):
    with claim(path) as run:
        for block in range(100):
            run.commit(0, block, writers.arrays(block, 5000))


def test_a_limit_of_file_size_keeps_what_was_committed(tmp_path):
    """The same where the system refuses a single large file."""
    with claim(tmp_path / "a") as run:
        run.commit(0, 0, writers.arrays(0))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            with pytest.raises(WriteError, match="File too large"):
                run.commit(0, 1, writers.arrays(1, 50_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        run.commit(0, 2, writers.arrays(2))
    assert list(open_run(tmp_path / "a").blocks) == [(0, 0), (0, 2)]
    assert verify_data(tmp_path / "a").ok


class Countdown:
    """Does what is asked; the last call that it counts fails as on a full disk."""

    def __init__(self, calls):
        self.left = calls

    def __call__(self, real, *args, **options):
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **options)


def test_every_call_may_fail_and_nothing_committed_is_lost(tmp_path, monkeypatch):
    """The disk fails at the first, second, ... call of a commit: it is there whole or not at all, and the next one works."""
    failures = 0
    for at in range(1, 40):
        path, calls = tmp_path / f"{at}", Countdown(at)
        with claim(path) as run:
            run.commit(0, 0, writers.arrays(0))
            with monkeypatch.context() as patched:
                for name in writers.CALLS:
                    patched.setattr(os, name, partial(calls, getattr(os, name)))
                try:
                    run.commit(0, 1, writers.arrays(1))
                except WriteError:
                    failures += 1
            committed = set(open_run(path).blocks)
            run.commit(0, 2, writers.arrays(2))
        stored = open_run(path)
        assert set(stored.blocks) == committed | {(0, 2)}
        assert verify_data(path).ok
        if calls.left > 0:
            break
    assert failures >= 8


@pytest.mark.parametrize("where", ["file/a", "x" * 300, "file", "null\0"])
def test_a_result_that_cannot_be_written_goes_elsewhere(result, tmp_path, monkeypatch, where):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="kept in"):
        kept = bm.save(result, tmp_path / where)
    assert kept != tmp_path / where
    np.testing.assert_array_equal(bm.load(kept)["energy"]["mean"], result.energy.mean)


def test_a_result_for_a_full_disk_goes_elsewhere(result, mounted, tmp_path, monkeypatch):
    """Also where a result is to be replaced: that one is still there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    disk = mounted("size=2m")
    bm.save(result, disk / "a")
    before = (disk / "a" / "manifest.jsonl").read_bytes()
    (disk / "filling").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - 2**13))
    for overwrite in (True, False):
        with pytest.warns(RuntimeWarning, match=r"MB are free there.* kept in"):
            kept = bm.save(result, disk / ("a" if overwrite else "b"), overwrite=overwrite)
        np.testing.assert_array_equal(bm.load(kept)["energy"]["mean"], result.energy.mean)
    assert (disk / "a" / "manifest.jsonl").read_bytes() == before
    assert {entry.name for entry in disk.iterdir()} == {"a", "filling"}
