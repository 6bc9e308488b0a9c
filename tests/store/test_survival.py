"""A run that is killed, stopped, starved or damaged, and then gone on with, is the run that was left alone: file by file, byte by byte."""

import os
import random
import signal
import time
import warnings
from contextlib import suppress
from pathlib import Path

import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

import bismut as bm
from bismut.cli.main import app
from bismut.documents import plain_json
from bismut.ensembles import block, request
from bismut.errors import StoreError
from bismut.executors import Threads
from bismut.formatting import counted
from bismut.store import (
    RunWriter,
    asked_counts,
    claim,
    open_run,
    provenance,
    read_provenance,
    resume_run,
    run_and_store,
    run_provenance,
    verify_data,
)
from tests.commands import Command, slowly
from tests.store import writers

TIMES = {"manifest.jsonl", "provenance.json", "certificate.json"}  # which tell when, how often and how long
RUN = ("run", "oscillator", "--steps", "60", "--trajectories", "24", "--block", "8", "--every", "7", "--observe", "energy,time_average:energy,paths")


def bismut(*words, code=0):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == code, (found.stdout, found.stderr, found.exception)
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def same(a: Path, b: Path) -> None:
    first, second = files(a), files(b)
    assert set(first) == set(second)
    assert {name for name in first if first[name] != second[name]} <= TIMES
    assert verify_data(a).ok


@pytest.fixture
def chunks(monkeypatch):
    """Chunks of sixteen steps with a checkpoint at the end of each."""
    monkeypatch.setattr(block.Pace, "steps", lambda self, trajectories: 16)
    monkeypatch.setattr(block, "CADENCE", -1.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that is left alone."""
    folder = tmp_path_factory.mktemp("whole") / "a"
    bismut(*RUN, "--out", folder)
    return folder


# Kills.


def asked():
    scheme = bm.Midpoint(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q, noise=lambda q: 0.3 * q))
    observe = {"energy": bm.energy, "mean": bm.time_average(bm.energy, every=3)}
    run = {"step": 0.05, "steps": 60, "trajectories": 40, "block": 8, "every": 7, "seed": 2}
    return request(scheme, scheme.start(jnp.ones(1), velocity=jnp.zeros(1)), observe=observe, **run)


def kept(path: Path, ready) -> None:
    """Begin the run, or go on with it."""
    if path.exists() and open_run(path).blocks | open_run(path).checkpoints:
        run = resume_run(path, ready, command="test")
    else:
        run = claim(path, {"provenance.json": plain_json(run_provenance(ready, "test"))}, asked=asked_counts(ready))
    with run:
        run_and_store(run, ready, progress=False, executor=Threads(1))


def killed(at: int, act, *arguments) -> bool:
    """Whether a fork of this process, in which everything is compiled, dies before the call number `at` that changes the disk."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of JAX, whose threads a fork does not have; the fork computes without JAX
        child = os.fork()
    if not child:
        try:
            writers.dying(at, act, *arguments)
            os._exit(0)
        finally:
            os._exit(1)
    deadline = time.monotonic() + 30
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(ended[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def test_a_run_that_is_killed_at_random_moments(tmp_path, chunks):
    """kill −9 before random calls that change the disk, writes cut in half: nothing committed is lost, and in the end all is as without kills."""
    ready, path, moments, kills, before = asked(), tmp_path / "a", random.Random(3), 0, {}
    kept(tmp_path / "whole", ready)
    while killed(moments.randint(1, 75 if kills < 20 else 600), kept, path, ready):  # the results are hundreds of calls
        kills += 1
        if not (path / "manifest.jsonl").exists():
            continue
        stored = open_run(path)
        assert verify_data(path).ok
        assert stored.state == "interrupted"
        now = {place: part.files for place, part in stored.committed.items() if place.startswith("blocks/")}
        assert before.items() <= now.items()
        before = now
        reached = {place: record["step"] for place, record in stored.checkpoints.items()}
        assert all(0 < step < 60 for step in reached.values())
    assert kills >= 20
    same(path, tmp_path / "whole")
    assert open_run(path).state == "complete"


LONGER = ("run", "oscillator", "--steps", "1500", "--trajectories", "96", "--block", "32", "--observe", "energy,time_average:energy")


def test_kill_9_of_the_command_line(tmp_path):
    """`bismut run` and `bismut resume` die by SIGKILL, in the first block and later; the next resume ends it, with the bytes of a run in one go."""
    words, folder = (*LONGER, "--out", "a"), tmp_path / "a"
    for at in ("checkpoints/0-0.zip", "blocks/0-0.zip"):
        process = Command(tmp_path, *words, before=slowly)
        process.wait_for((folder / at).exists)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert open_run(folder).state == "interrupted"
        words = ("resume", "a")
    told = bismut("info", folder).stdout
    assert "interrupted" in told
    assert counted(len(open_run(folder).blocks), "block") + " committed" in told
    bismut("resume", folder)
    bismut(*LONGER, "--out", tmp_path / "whole")
    same(folder, tmp_path / "whole")


# Stops.


@pytest.mark.long
def test_a_stopped_run_goes_on(tmp_path, chunks, monkeypatch, whole):
    """A limit of time ends a run at a chunk, with a code of its own; again and again until it is complete."""
    seen, real = [], time.monotonic
    monkeypatch.setattr(block.Pace, "learn", lambda self, steps, trajectories, seconds: seen.append(steps))
    monkeypatch.setattr("bismut.ensembles.interruption.time.monotonic", lambda: real() + (1e6 if len(seen) >= 3 else 0))
    folder, words, stops = tmp_path / "a", (*RUN, "--out", tmp_path / "a"), 0
    while True:
        seen.clear()
        found = CliRunner().invoke(app, [*map(str, words), "--max-time", "1h"])
        if found.exit_code == 0:
            break
        assert found.exit_code == 75
        assert f"the time is up; what is done is in {folder}. bismut resume {folder} goes on." in found.stderr
        assert open_run(folder).state == "interrupted"
        words, stops = ("resume", folder), stops + 1
    assert stops >= 2
    same(folder, whole)
    assert "is complete" in bismut("resume", folder).stdout


def fill(disk: Path, leave: int) -> None:
    """A file that leaves so many bytes free. Others write meanwhile, so it grows page by page and may find the disk full."""
    with suppress(OSError), (disk / "filling").open("wb", buffering=0) as file:
        while (free := os.statvfs(disk)).f_bavail * free.f_frsize > leave:
            file.write(bytes(4096))


def test_a_full_disk_ends_a_run_that_can_be_resumed(mounted, chunks, tmp_path, monkeypatch):
    """What was committed before is intact; the error says what happened and what to do; with room the run goes on."""
    disk, words = mounted("size=4m"), (*RUN, "--block", "2")  # many blocks, most of which are not begun when the disk is full
    bismut(*words, "--out", tmp_path / "whole")
    real, commits = RunWriter.commit, []

    def filling(self, *what):
        commits.append(what[:2])
        if len(commits) == 2:
            fill(disk, leave=2**13)
        real(self, *what)

    monkeypatch.setattr("bismut.store.run_writer.RunWriter.commit", filling)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = bismut(*words, "--out", disk / "a", code=1)
    assert "No space left on device" in found.stderr
    assert f"the disk is full; what is done is in {disk / 'a'}. bismut resume {disk / 'a'} goes on." in found.stderr
    assert len(open_run(disk / "a").blocks) == 1
    assert verify_data(disk / "a").ok
    again = bismut("resume", disk / "a", code=1).stderr
    assert again == f"bismut: {disk}/a needs 1.0 MB, but 0.0 MB are free there. What was committed is intact: free space there, then resume.\n"
    assert open_run(disk / "a").state == "interrupted"
    (disk / "filling").unlink()
    bismut("resume", disk / "a")
    same(disk / "a", tmp_path / "whole")


def test_who_is_second_is_refused(tmp_path, chunks, whole):
    with claim(whole, resume=True) as run:
        assert "is being written by process" in bismut("extend", whole, "--steps", "3", code=2).stderr
        run.commit_documents({}, state="complete")
    assert open_run(whole).state == "complete"


# Damage.


def damaged(folder: Path, what: str) -> str:
    """Do it, and say which file it is about."""
    place = {"block": "blocks/0-1.zip", "chunk": "statistics/energy/mean/c/0", "words": "statistics/energy/mean/zarr.json"}
    kind, _, which = what.partition(" ")
    file = folder / place.get(which, which)
    if kind == "flipped":
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 4
        file.write_bytes(data)
    elif kind == "truncated":
        file.write_bytes(file.read_bytes()[:-3])
    elif kind == "deleted":
        file.unlink()
    elif kind == "foreign":
        file.write_text(file.read_text().replace("steps = 60", "steps = 61"))
    elif kind == "hostile":
        file.write_text(file.read_text().replace('"name":"crc32c"', '"name":"pickle"'))
    elif kind == "altered":
        lines = file.read_bytes().split(b"\n")
        at = [i for i, line in enumerate(lines) if b'"what":"blocks"' in line][1]
        lines[at] = lines[at].replace(b'"steps":60', b'"steps":59')
        file.write_bytes(b"\n".join(lines))
        return f"manifest.jsonl, line {at + 1} is altered"
    return str(file.relative_to(folder))


@pytest.mark.parametrize(
    ("what", "computed"),
    [
        ("flipped block", 1),
        ("truncated block", 1),
        ("deleted block", 1),
        ("flipped chunk", 0),
        ("truncated chunk", 0),
        ("deleted chunk", 0),
        ("hostile words", 0),
        ("foreign run.toml", 0),
        ("deleted provenance.json", 0),
        ("altered manifest.jsonl", 2),
    ],
)
def test_what_is_damaged_is_named_and_mended(tmp_path, chunks, whole, what, computed):
    folder = tmp_path / "a"
    os.system(f"cp -r {whole} {folder}")
    named = damaged(folder, what)
    told = bismut("verify", folder, "--data", code=1).stdout
    assert " 0 corrupt" not in told
    assert named in told
    assert f"`bismut repair {folder}`" in told
    if "chunk" in what or "words" in what:
        with pytest.raises(StoreError, match=named.rpartition("/")[2]):
            bm.load(folder)["energy"]["mean"].values.sum()
    mended = bismut("repair", folder).stdout
    assert f"{counted(computed, 'block')} computed again" in mended
    assert max(map(len, mended.splitlines())) < 1000
    assert "0 corrupt" in mended
    same(folder, whole)
    assert "nothing is damaged" in bismut("repair", folder).stdout


def test_a_torn_manifest_is_what_was_committed(tmp_path, chunks, whole):
    """Half a line at the end is not a commit: the run is as far as the line before, says so, and goes on from there."""
    folder = tmp_path / "a"
    os.system(f"cp -r {whole} {folder}")
    with claim(folder, resume=True) as run:
        run.commit_documents({}, state="complete")
    manifest = folder / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes()[:-40])
    told = bismut("verify", folder, "--data").stdout
    assert "half a line at its end, which was not committed" in told
    assert "interrupted, 24 of 24 trajectories" in told
    bismut("resume", folder)
    same(folder, whole)


def test_what_is_left_of_an_interrupted_run_is_mended(tmp_path, chunks, monkeypatch, whole):
    """Of a run that is not complete, damaged blocks are computed and no others; a damaged checkpoint is given up."""
    folder, seen, real = tmp_path / "a", [], time.monotonic
    monkeypatch.setattr("bismut.executors.threads.cores", lambda: 1)  # five chunks of the first block, then four of the second
    monkeypatch.setattr(block.Pace, "learn", lambda self, steps, trajectories, seconds: seen.append(steps))
    monkeypatch.setattr("bismut.ensembles.interruption.time.monotonic", lambda: real() + (1e6 if len(seen) >= 9 else 0))
    bismut(*RUN, "--out", folder, "--max-time", "1h", code=75)
    monkeypatch.setattr("bismut.ensembles.interruption.time.monotonic", real)
    stored = open_run(folder)
    (variant, first), *_ = stored.blocks
    assert stored.checkpoints
    damaged(folder, f"flipped blocks/{variant}-{first}.zip")
    for at in stored.checkpoints:
        damaged(folder, f"truncated checkpoints/{at[0]}-{at[1]}.zip")
    assert "is damaged" in bismut("resume", folder, code=2).stderr
    assert "1 block computed again" in bismut("repair", folder).stdout
    assert open_run(folder).state == "interrupted"
    assert list(open_run(folder).blocks) == list(stored.blocks)
    assert not open_run(folder).checkpoints
    bismut("resume", folder)
    same(folder, whole)


# More.


@pytest.mark.long
def test_more_steps_and_trajectories(tmp_path, chunks, whole):
    """A run that was given more is the larger run with its stride and blocks; where no last states were kept, too."""
    for final in ("--final", "--no-final"):
        small, large = tmp_path / f"small{final}", tmp_path / f"large{final}"
        bismut(*RUN, final, "--steps", "39", "--trajectories", "12", "--out", small)
        bismut("continue", small, "--steps", "21")
        bismut("extend", small, "--trajectories", "12")
        bismut(*RUN, final, "--out", large)
        same(small, large)
        assert len(read_provenance(open_run(small))["taken_up"]) == 2
    assert "How much more?" in bismut("extend", small, code=2).stderr


def test_what_differs_is_named_and_what_is_forced_is_written_down(tmp_path, chunks, whole, monkeypatch):
    folder = tmp_path / "a"
    os.system(f"cp -r {whole} {folder}")
    real = provenance._version
    monkeypatch.setattr(provenance, "_version", lambda name: "9.9" if name == "llvmlite" else real(name))
    refused = bismut("extend", folder, "--steps", "2", code=2).stderr
    assert f"version.llvmlite is {real('llvmlite')} there, 9.9 here" in refused
    assert "--force" in refused
    assert open_run(folder).state == "complete"
    bismut("extend", folder, "--steps", "2", "--force")
    overridden = read_provenance(open_run(folder))["taken_up"][-1]["overridden"]
    assert overridden == [f"version.llvmlite is {real('llvmlite')} there, 9.9 here"]
    assert any(entry.get("overridden") == overridden for entry in open_run(folder).manifest.entries)


MODEL = """
import bismut as bm, jax.numpy as jnp

def system(stiffness=1.0):
    return bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * stiffness * q @ q, noise=lambda q: 0.3 * q)

def start(scheme):
    return scheme.start(jnp.ones(1), velocity=jnp.zeros(1))
"""


def test_a_model_is_named_again_and_compared(tmp_path, chunks):
    """A folder never says which code is run."""
    model, folder = tmp_path / "model.py", tmp_path / "a"
    model.write_text(MODEL)
    words = ("run", f"{model}:system", "--set", "stiffness=2", *RUN[4:-2], "--observe", "energy")
    bismut(*words, "--steps", "40", "--out", folder)
    assert f"Name it: --model {model}:system" in bismut("extend", folder, "--steps", "20", code=2).stderr
    model.write_text(MODEL.replace("0.3", "0.4"))
    assert "its text has changed" in bismut("extend", folder, "--steps", "20", "--model", f"{model}:system", code=2).stderr
    forced = bismut("extend", folder, "--steps", "20", "--model", f"{model}:system", "--force").stdout
    assert "60 steps" in forced
    assert any("scheme is another" in words for words in read_provenance(open_run(folder))["taken_up"][-1]["overridden"])
    model.write_text(MODEL)
    bismut(*words, "--steps", "60", "--out", tmp_path / "whole")
    assert read_provenance(open_run(tmp_path / "whole"))["model"]["sha256"]
