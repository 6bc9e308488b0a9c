"""Whoever computes has a place for it first, alone, and it is a place that can be written."""

import json
import os
import signal
import socket
import sys

import pytest

from bismut.errors import StoreError, WriteError
from bismut.store import claim, open_run
from tests.store import writers


def contend(path, count: int, numbered: bool) -> list[tuple[str, str]]:
    gate, told = writers.PROCESSES.Barrier(count), writers.PROCESSES.Queue()
    processes = [writers.start(writers.contender, path, gate, told, numbered) for _ in range(count)]
    answers = [told.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    return answers


def test_of_many_who_claim_one_folder_one_gets_it(tmp_path):
    answers = contend(tmp_path / "a", 6, numbered=False)
    assert sorted(what for what, _ in answers) == ["claimed"] + ["refused"] * 5
    assert all("is being written by" in words or "exists already" in words for what, words in answers if what == "refused")
    assert open_run(tmp_path / "a").state == "complete"


def test_of_many_who_take_the_next_free_name_each_gets_one(tmp_path):
    answers = contend(tmp_path / "a", 5, numbered=True)
    assert {folder for _, folder in answers} == {"a", "a-2", "a-3", "a-4", "a-5"}
    assert {entry.name for entry in tmp_path.iterdir()} == {"a", "a-2", "a-3", "a-4", "a-5"}


def test_a_live_writer_is_not_disturbed(tmp_path):
    """Neither by overwriting nor by going on, from this process or another; after it has ended both are possible."""
    hears, tells = writers.PROCESSES.Pipe(duplex=False)
    process = writers.start(writers.holder, tmp_path / "a", tells)
    assert hears.recv() == "there"
    for how in ({"overwrite": True}, {"resume": True}):
        with pytest.raises(StoreError, match=f"is being written by process {process.pid} on"):
            claim(tmp_path / "a", **how)
    process.kill()
    process.join()
    claim(tmp_path / "a", resume=True).close()
    with claim(tmp_path / "b") as run:
        run.commit(0, 0, {})
        with pytest.raises(StoreError, match="is being written"):
            claim(tmp_path / "b", resume=True)


def test_a_lock_belongs_to_a_process_not_to_its_number(tmp_path):
    """A number that was given again does not keep a run; another host does, because it cannot be asked."""
    with claim(tmp_path / "a") as run:
        run.commit(0, 0, {})
    lock = tmp_path / "a" / "lock"
    lock.write_text(json.dumps({"host": socket.gethostname(), "process": os.getpid(), "began": "another boot 1"}))
    assert open_run(tmp_path / "a").state == "interrupted"
    claim(tmp_path / "a", resume=True).close()
    lock.write_text(json.dumps({"host": socket.gethostname(), "process": 10**30, "began": "x"}))  # a number that no process has
    assert open_run(tmp_path / "a").state == "interrupted"
    lock.write_text(json.dumps({"host": "elsewhere", "process": 1, "began": "x", "locked": "yesterday"}))
    with pytest.raises(StoreError, match=r"process 1 on elsewhere since yesterday.*remove .*lock"):
        claim(tmp_path / "a", resume=True)


def test_only_what_bismut_made_is_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("all of it")
    with pytest.raises(StoreError, match="not the folder of a run"):
        claim(tmp_path / "mine", overwrite=True)
    writers.saved(tmp_path / "a", 1.0)
    (tmp_path / "a" / "notes").write_text("of mine")
    with pytest.raises(StoreError, match="also holds notes"):
        claim(tmp_path / "a", overwrite=True)
    with pytest.raises(StoreError, match="exists already"):
        claim(tmp_path / "a")
    assert (tmp_path / "mine" / "thesis").read_text() == "all of it"
    assert (tmp_path / "a" / "notes").read_text() == "of mine"


def test_who_leaves_without_a_commit_leaves_nothing(tmp_path):
    """An old run that was to be replaced is still there; a name that was claimed is free."""
    writers.saved(tmp_path / "old", 1.0)
    for name, how in (("new", {}), ("old", {"overwrite": True})):
        with pytest.raises(KeyboardInterrupt), claim(tmp_path / name, **how):
            raise KeyboardInterrupt
    assert {entry.name for entry in tmp_path.iterdir()} == {"old"}
    assert open_run(tmp_path / "old").state == "complete"


@pytest.mark.parametrize("where", ["Lock", "Manifest.create", "RunWriter.commit_documents"])
def test_ctrl_c_during_a_claim_leaves_nothing(tmp_path, monkeypatch, where):
    name, _, method = where.partition(".")
    claims = sys.modules[claim.__module__]
    owner, attribute = (getattr(claims, name), method) if method else (claims, name)
    whole = getattr(owner, attribute)

    def interrupted(*arguments, **named):
        signal.raise_signal(signal.SIGINT)
        return whole(*arguments, **named)

    monkeypatch.setattr(owner, attribute, interrupted)
    with pytest.raises(KeyboardInterrupt):
        claim(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_refused_at_once(tmp_path):
    """A file in the way, at the end or on the way; names that are too long or that no disk has; no space."""
    (tmp_path / "file").write_text("")
    for path, words in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "a", "Not a directory|File exists"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "a\0b", "null"),
    ):
        with pytest.raises(WriteError, match=words):
            claim(path)
    with pytest.raises(WriteError, match="MB are free"):
        claim(tmp_path / "a", need=10**18)
    with pytest.raises(StoreError, match="not a valid name"):
        claim("")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_odd_names_are_kept(tmp_path):
    """Spaces, quotes, line breaks, other letters, and as long as a name may be, also when replaced."""
    for name in ("a b", "it's", "line\nbreak", "Größe-β", "~", "-rf", "x" * 250, "trailing."):
        for number in (1.0, 2.0):
            writers.saved(tmp_path / name, number)
        assert open_run(tmp_path / name).results().attributes["number"] == 2.0


def test_a_read_only_disk_is_refused_at_once(mounted):
    folder = mounted("size=4m,ro")
    with pytest.raises(WriteError, match="Read-only"):
        claim(folder / "a")
    with pytest.raises(WriteError, match="Read-only"):
        claim(folder / "b" / "c", numbered=True)


def test_an_interrupt_while_waiting_closes_the_lock_once(tmp_path, monkeypatch):
    """A second close would hit whatever has been opened in between; what is raised is the interrupt."""

    def interrupted(seconds):
        raise KeyboardInterrupt

    with claim(tmp_path / "a") as run:
        run.commit(0, 0, {})
        monkeypatch.setattr("bismut.store.lock.time.sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            claim(tmp_path / "a", resume=True)
        monkeypatch.undo()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_is_being_written_is_called_so(tmp_path, overwrite):
    """Not that it exists and --overwrite would replace it, which it would not."""
    with claim(tmp_path / "a") as run:
        run.commit(0, 0, writers.arrays(0))
        with pytest.raises(StoreError, match=rf"is being written by process {os.getpid()} on .*Wait for it to end, or choose another name"):
            claim(tmp_path / "a", overwrite=overwrite)
    with pytest.raises(StoreError, match=r"exists already\. Choose another name, or replace it with --overwrite"):
        claim(tmp_path / "a")
