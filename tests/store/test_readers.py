"""Whoever reads while somebody writes sees the old or the new, and whoever comes after a killed process finds nothing that it left."""

import json
import re
import time

import numpy as np
import pytest

import bismut as bm
from bismut.errors import ChangedError, StoreError
from bismut.store import claim, open_run, read_provenance, read_run, verify_data
from bismut.store.manifest import MANIFEST
from bismut.store.run_reader import read_stable, sibling
from tests.store import writers
from tests.store.test_kills import died


def extended(path, number: float) -> None:
    """A run gone on with: documents and results of other sizes, at the same places."""
    with claim(path, resume=True) as run:
        run.commit_documents({"provenance.json": json.dumps({"number": number, "more": "x" * int(10 * number)})}, state="running")
        run.checkpoint(0, 0, writers.arrays(int(number), 20 + int(number)), {})
        run.commit(0, 0, writers.arrays(int(number), 20 + int(number)), {})
        run.finish(results=writers.results(number, 30 + int(number)))


def writer(path, act, told) -> None:
    """Extend or replace a run, again and again."""
    for number in range(2, 10_000):
        act(path, float(number))
        told.send(number)


@pytest.mark.filterwarnings("ignore:.*is not complete")
@pytest.mark.parametrize("act", [extended, writers.saved])
def test_readers_see_the_old_or_the_new(tmp_path, act):
    """Another process extends or replaces a run without pause; numbers of one reading are all of one run, and nothing is called damaged."""
    path = tmp_path / "a"
    writers.saved(path, 1.0)
    hears, tells = writers.PROCESSES.Pipe(duplex=False)
    process = writers.start(writer, path, act, tells)
    seen, end, changed, writes = set(), time.monotonic() + 3.0, 0, 0
    try:
        assert hears.poll(30)
        while time.monotonic() < end or len(seen) < 3:
            tree = bm.load(path) if "statistics" in open_run(path).committed else None
            if tree is not None:
                try:
                    values = np.unique(np.concatenate([tree[name]["mean"].values for name in ("zeta", "alpha")]))
                except ChangedError:  # numbers that were not read yet belong to a run that is gone: it is to be loaded again
                    changed += 1
                else:
                    assert len(values) == 1
                    seen.add(values[0])
            if "statistics" in open_run(path).committed:
                found = read_run(path).statistics
                assert (found["zeta"]["mean"].values == found.attrs["number"]).all()
                assert (found["alpha"]["mean"].values == found.attrs["number"]).all()
            assert verify_data(path).ok
            assert isinstance(read_stable(path, read_provenance), dict)
        while hears.poll():
            hears.recv()
            writes += 1
    finally:
        process.kill()
        process.join()
    assert max(seen) > 2
    assert changed <= writes + 1, (changed, writes)  # none without a change of its own, the last of which may not be told yet


def test_a_run_that_is_set_aside_while_it_is_read_is_read_again(tmp_path):
    """Between two renames of a replacement the run of now is the old one, elsewhere: nothing of it is missing."""
    path = tmp_path / "a"
    writers.saved(path, 1.0)
    stored = open_run(path)
    path.rename(sibling(path, "old"))
    with pytest.raises(ChangedError):
        stored.results(2**20)
    assert read_stable(path, lambda run: run.results(2**20)) is not None


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*is not complete")
@pytest.mark.parametrize("act", [extended, writers.saved])
def test_what_a_killed_process_left_goes_with_the_next_reader(tmp_path, act):
    """Death before each of the last calls that change the disk: the lock, what was replaced and what was not committed are gone after `load`."""
    path, at, left = tmp_path / "a", 20, 0
    writers.saved(path, 1.0)
    while died(writers.dying, at, act, path, float(at)):
        left += (path / "lock").exists()
        assert bm.load(path).attrs["state"] in ("complete", "interrupted")
        assert not (path / "lock").exists()
        assert not [entry.name for entry in path.rglob("*") if re.search(r"\.(\d+|old)$", entry.name)]
        if open_run(path).state == "complete":
            assert not sibling(path, "old").exists()
        at += 3
    assert left > 10
    bm.load(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_lock_that_somebody_holds_stays(tmp_path):
    writers.saved(tmp_path / "a", 1.0)
    with claim(tmp_path / "a", resume=True) as run:
        with pytest.warns(UserWarning, match="not complete"):
            bm.load(tmp_path / "a")
        assert (tmp_path / "a" / "lock").exists()
        run.commit(0, 0, {})


@pytest.mark.parametrize("harm", [lambda file: file.unlink(), lambda file: file.write_bytes(b"\xff{")])
def test_a_manifest_that_is_gone_or_unreadable_is_called_that(tmp_path, harm):
    """Not a run that somebody changes: nobody does, and reading it again would not help."""
    path = tmp_path / "a"
    writers.saved(path, 1.0)
    run = open_run(path)
    damaged = next(file for file in (path / "statistics").rglob("*") if file.is_file())
    damaged.write_bytes(b"x")
    harm(path / MANIFEST)
    with pytest.raises(StoreError, match=MANIFEST) as problem:
        run.read("statistics", str(damaged.relative_to(path / "statistics")))
    assert not isinstance(problem.value, ChangedError)
