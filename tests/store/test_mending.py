"""What a run is after something was forced, extended, cut or looked at: what its folder says, and what is suggested, is true."""

import os
import time
from pathlib import Path

import pytest

from bismut.store import claim, open_run, read_provenance, source_hash, verify_data
from tests.store.test_survival import MODEL, RUN, bismut, damaged, same

SHORT = (*RUN[:2], "--steps", "39", *RUN[4:])


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A run that was given more steps."""
    folder = tmp_path_factory.mktemp("extended") / "a"
    bismut(*SHORT, "--out", folder)
    bismut("extend", folder, "--steps", "21")
    return folder


def copied(source: Path, folder: Path) -> Path:
    os.system(f"cp -r {source} {folder}")
    return folder


# What was forced.


def test_a_model_that_was_forced_is_the_model_from_then_on(tmp_path):
    """The text in the folder and its hash are those of the second model; it resumes and repairs without force; what comes out otherwise is named."""
    model, folder = tmp_path / "model.py", tmp_path / "a"
    model.write_text(MODEL)
    bismut("run", f"{model}:system", "--set", "stiffness=2", *RUN[2:-2], "--observe", "energy", "--steps", "40", "--out", folder)
    second = MODEL.replace("0.3", "0.4")
    model.write_text(second)
    again = ("--model", f"{model}:system")
    bismut("extend", folder, "--steps", "20", *again, "--force")
    assert (folder / "model.txt").read_text() == second
    assert read_provenance(open_run(folder))["model"]["sha256"] == source_hash(second)
    assert read_provenance(open_run(folder))["model"]["place"] == f"{model}:system"
    damaged(folder, "flipped block")
    mended = bismut("repair", folder, *again).stdout
    assert "1 block computed again" in mended
    assert "not what they were, but what another program gives (see taken_up in provenance.json): blocks/0-1.zip" in mended
    damaged(folder, "flipped block")
    assert "not what they were" not in bismut("repair", folder, *again).stdout  # the second program gives what the second program gave
    with claim(folder, resume=True) as run:
        run.commit_documents({}, state="interrupted")
    assert "60 steps" in bismut("resume", folder, *again).stdout
    model.write_text(MODEL)
    assert "its text has changed" in bismut("extend", folder, "--steps", "1", *again, code=2).stderr


# What the manifest lost.


def cut(folder: Path, how: str) -> None:
    """Lose the lines in which the run was extended: cut off, or the first of them altered."""
    manifest = folder / "manifest.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"steps":60' in line)
    lines = lines[: at - 1] if how == "cut off" else [*lines[:at], lines[at].replace(b"60", b"61"), *lines[at + 1 :]]
    manifest.write_bytes(b"".join(lines))


@pytest.mark.parametrize("how", ["cut off", "altered"])
def test_an_extended_run_whose_manifest_is_damaged_stays_extended(tmp_path, extended, how):
    """run.toml and provenance.json say together what the run is; its certificate is vouched for again."""
    folder = copied(extended, tmp_path / "a")
    cut(folder, how)
    assert not verify_data(folder).ok
    told = bismut("repair", folder).stdout
    assert "it is restored as the longer run" in told
    assert "not what they were" not in told
    assert open_run(folder).asked == {"trajectories": 24, "steps": 60}
    assert "certificate.json" in open_run(folder).committed
    same(folder, extended)
    bismut("extend", folder, "--trajectories", "8")


FALLING = """
import jax.numpy as jnp
import bismut as bm

system = bm.mechanical(bm.Euclidean(1), potential=lambda q: -0.3 * jnp.sum(q**4), noise=lambda q: 0.5 * q)


def start(scheme):
    return scheme.start(jnp.full(1, 0.5), velocity=jnp.zeros(1))
"""


def test_a_complete_run_without_its_last_two_lines_is_what_it_was(tmp_path):
    """Some of its trajectories fail, at different steps; block by block and byte by byte."""
    model, folder = tmp_path / "falling.py", tmp_path / "a"
    model.write_text(FALLING)
    asked = ("--step", "0.1", "--steps", "60", "--trajectories", "24", "--block", "8", "--seed", "4", "--observe", "q")
    assert "of 24 trajectories failed" in bismut("run", f"{model}:system", *asked, "--out", folder, code=1).output
    before, manifest = copied(folder, tmp_path / "before"), folder / "manifest.jsonl"
    manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:-2]))
    assert not verify_data(folder).ok
    bismut("repair", folder)
    bismut("resume", folder, "--model", f"{model}:system", code=1)  # as the run itself ended: trajectories failed
    same(folder, before)


@pytest.mark.parametrize("file", ["run.toml", "provenance.json"])
def test_documents_that_contradict_each_other_are_not_believed(tmp_path, extended, file):
    """One number altered in either of them, and the run is what the manifest still knows of it."""
    folder = copied(extended, tmp_path / "a")
    cut(folder, "altered")
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace("steps = 60", "steps = 61").replace('"steps": 60', '"steps": 61'))
    assert (folder / file).read_text() != text
    assert "extend it again" in bismut("repair", folder).stdout
    assert open_run(folder).asked == {"trajectories": 24, "steps": 39}
    bismut("extend", folder, "--steps", "21")
    same(folder, extended)


def test_a_refused_repair_changes_nothing(tmp_path):
    model, folder = tmp_path / "model.py", tmp_path / "a"
    model.write_text(MODEL)
    bismut("run", f"{model}:system", *RUN[2:-2], "--observe", "energy", "--out", folder)
    damaged(folder, "truncated provenance.json")
    damaged(folder, "flipped block")
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert "Name it: --model" in bismut("repair", folder, code=2).stderr
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


# What is said.


def test_info_says_what_to_do(tmp_path, extended):
    """Wait for a run that is being written, resume one that was interrupted, repair one that is damaged."""
    folder = copied(extended, tmp_path / "a")
    with claim(folder, resume=True) as run:
        told = bismut("info", folder).stdout
        assert f"It is being written by process {os.getpid()} on " in told
        assert "resume" not in told
        run.commit_documents({}, state="interrupted")
    assert f"`bismut resume {folder}` goes on." in bismut("info", folder).stdout
    damaged(folder, "flipped block")
    told = bismut("info", folder).stdout
    assert "resume" not in told
    assert f"`bismut repair {folder}` recomputes what is lost." in told
    damaged(folder, "deleted chunk")
    for words in (("info", folder), ("plot", folder)):
        assert f"`bismut repair {folder}` recomputes what is lost." in bismut(*words, code=2).stderr
    assert f"`bismut repair {folder}`" in bismut("verify", folder, "--data", code=1).stdout


def test_long_lists_are_cut(tmp_path, extended):
    """Eighty damaged files are not eighty sentences in a line."""
    folder = copied(extended, tmp_path / "a")
    chunks = [file for file in (folder / "statistics").rglob("*") if file.is_file()]
    for file in chunks:
        file.write_bytes(file.read_bytes() + b"x")
    assert len(chunks) > 40
    for told in (bismut("verify", folder, "--data", code=1).stdout, bismut("info", folder, code=2).stderr, bismut("repair", folder).stdout):
        assert f"and {len(chunks) - 5} more" in told
        assert max(map(len, told.splitlines())) < 2000
    same(folder, extended)


def test_counts_of_a_run_that_has_no_block_yet(tmp_path):
    """Nothing is done, or so many trajectories have so many steps: never no trajectory with all steps."""
    with claim(tmp_path / "a", asked={"trajectories": 8, "steps": 40}) as run:
        run.checkpoint(0, 0, {}, {"step": 20, "trajectories": 8})
        assert str(run.stored) == "running, 0 of 8 trajectories, 0 of 40 steps, 0 blocks committed, 1 in progress"
        run.commit(0, 0, {}, {"steps": 30, "trajectories": 4})
        assert str(run.stored) == "running, 4 of 8 trajectories, 30 of 40 steps, 1 block committed"
        run.commit(0, 1, {}, {"steps": 40, "trajectories": 4})
        assert run.stored.done == {"trajectories": 4, "steps": 40}


def test_a_complete_run_says_so_once(extended):
    told = bismut("resume", extended).stdout
    assert told.startswith(f"{extended} is complete, 24 of 24 trajectories, 60 of 60 steps. Nothing is computed")


def test_the_clock_of_max_time_began_with_the_process(tmp_path, monkeypatch):
    """Reading Python took an hour: nothing is left for the run, which says so and can be resumed later."""
    monkeypatch.setattr("bismut.cli._CLOCK", [time.monotonic() - 3600])
    told = bismut(*RUN, "--out", tmp_path / "a", "--max-time", "30m", code=75).stderr
    assert "the time is up" in told
