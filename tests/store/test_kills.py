"""kill −9 at any moment loses nothing that was committed, and leaves the old or the new."""

import os
import random
import signal
import time

import numpy as np
import pytest

import bismut as bm
from bismut.store import claim, open_run, verify_data
from tests.store import writers

SIGKILLED = -9


def died(act, *arguments) -> bool:
    process = writers.start(act, *arguments)
    process.join(30)
    assert process.exitcode in (0, SIGKILLED)
    return process.exitcode == SIGKILLED


@pytest.mark.long
def test_overwriting_leaves_the_old_or_the_new_wherever_it_is_killed(tmp_path):
    """Death before this or that call that changes the disk, writes cut in half: one of the two is there, whole and checked."""
    new = 0
    path, seen, at, strides = tmp_path / "a", [1.0], 1, random.Random(1)
    writers.saved(path, 1.0)
    while died(writers.dying, at, writers.saved, path, at + 1.0):
        tree = bm.load(path)
        seen.append(tree.attrs["number"])
        assert tree.attrs["state"] == "complete"
        assert verify_data(path).ok
        for group in ("zeta", "alpha"):
            assert (tree[group]["mean"] == seen[-1]).all()
        assert seen[-1] in (at + 1.0, seen[-2])
        new += seen[-1] == at + 1.0
        assert list(tree.children) == ["zeta", "alpha"]
        at += strides.choice((1, 1, 2, 3))  # most moments; all of them would take twice as long
    assert len(seen) > 40
    assert bm.load(path).attrs["number"] == at + 1.0
    assert 0 < new < len(seen) - 20  # both were left
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_new_result_is_there_whole_or_not_at_all(tmp_path):
    """The same where nothing was before; and the name can be had again at once."""
    at = 1
    while died(writers.dying, at, writers.saved, tmp_path / f"{at}", 5.0, False):
        path = tmp_path / f"{at}"
        if (path / "manifest.jsonl").exists() and "statistics" in open_run(path).committed:
            assert (bm.load(path)["alpha"]["mean"] == 5.0).all()
        else:
            claim(path).close()
            assert not path.exists()
        at += 2
    assert at > 40


def test_blocks_survive_kills_at_random_moments(tmp_path):
    """A writer of blocks is killed 20 times, as it begins or later: what it said to be committed is there, and in the end all is as without kills."""
    path, committed, moments = tmp_path / "a", set(), random.Random(0)
    for attempt in range(20):
        hears, tells = writers.PROCESSES.Pipe(duplex=False)
        process = writers.start(writers.blocks, path, 10_000, tells)
        tells.close()
        if attempt % 2:
            assert hears.poll(30)  # a block is committed, however busy the machine is
        process.join(0.04 * moments.random())
        process.kill()
        process.join()
        assert process.exitcode == SIGKILLED
        committed |= _heard(hears)
        if (path / "manifest.jsonl").exists():
            stored = open_run(path)
            assert verify_data(path).ok
            assert {(0, block) for block in committed} <= set(stored.blocks)
            assert stored.state == "interrupted"
    assert committed
    count = max(committed) + 3
    _, tells = pipe = writers.PROCESSES.Pipe(duplex=False)
    for folder in (path, tmp_path / "whole"):
        writers.blocks(folder, count, tells)
    del pipe
    stored = open_run(path)
    assert stored.state == "complete"
    assert list(stored.blocks) == [(0, block) for block in range(count)]
    assert not stored.checkpoints
    for block in range(count):
        np.testing.assert_equal(stored.block(0, block), writers.arrays(block))
    files = lambda folder: {entry.relative_to(folder): entry.read_bytes() for entry in folder.rglob("*") if entry.is_file()}
    first, second = files(path), files(tmp_path / "whole")
    assert set(first) == set(second)
    assert {str(file) for file in first if first[file] != second[file]} == {"manifest.jsonl"}  # which tells of every attempt


def _heard(pipe) -> set[int]:
    """All that was sent before the other end died."""
    heard = set()
    while pipe.poll():
        try:
            heard.add(pipe.recv())
        except EOFError:
            break
    return heard


def test_a_block_in_progress_survives_every_moment_of_its_next_checkpoint(tmp_path):
    """Checkpoint 1 or 2 is there, whole, wherever the writer of checkpoint 2 dies."""
    path, at, seen = tmp_path / "a", 1, set()
    with claim(path) as run:
        run.checkpoint(0, 3, writers.arrays(1), {"step": 1})
    while died(writers.dying, at, _second_checkpoint, path):
        stored = open_run(path)
        step = stored.checkpoints[0, 3]["step"]
        np.testing.assert_equal(stored.checkpoint(0, 3), writers.arrays(step))
        seen.add(step)
        with claim(path, resume=True) as run:
            run.checkpoint(0, 3, writers.arrays(1), {"step": 1})
        at += 1
    assert seen == {1, 2}


def _second_checkpoint(path):
    with claim(path, resume=True) as run:
        run.checkpoint(0, 3, writers.arrays(2), {"step": 2})


def test_a_run_whose_writer_was_killed_is_interrupted_and_adopted(tmp_path):
    hears, tells = writers.PROCESSES.Pipe(duplex=False)
    process = writers.start(writers.holder, tmp_path / "a", tells)
    assert hears.recv() == "there"
    assert open_run(tmp_path / "a").state == "running"
    process.kill()
    process.join()
    assert open_run(tmp_path / "a").state == "interrupted"
    with claim(tmp_path / "a", resume=True) as run:
        np.testing.assert_equal(run.stored.block(0, 0), writers.arrays(0))
        assert open_run(tmp_path / "a").state == "running"
        run.commit(0, 1, writers.arrays(1))
    assert open_run(tmp_path / "a").state == "interrupted"


def test_signals_wait_for_the_end_of_a_write(tmp_path):
    """Ctrl-C, SIGTERM and SIGHUP, many of them, while a result is written: it is there, and then the first of them is heard."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        hears, tells = writers.PROCESSES.Pipe(duplex=False)
        path = tmp_path / signal.Signals(number).name
        process = writers.start(writers.slow_writer, path, tells)
        assert hears.recv() == "writing"
        for _ in range(5):
            time.sleep(0.05)
            os.kill(process.pid, number)
        process.join(30)
        assert process.exitcode == (130 if number == signal.SIGINT else -number)
        assert (bm.load(path)["alpha"]["mean"] == 7.0).all()
