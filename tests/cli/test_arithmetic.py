"""Bits belong to the arithmetic, and the processor is information: parts of other processors are one run, parts of another arithmetic are not."""

import time

import numpy as np
import pytest

import bismut as bm
from bismut.engines.native import engine, target
from bismut.ensembles import block
from bismut.errors import DomainError
from bismut.gallery import entry
from bismut.store import load, open_run, provenance

RUN = ("run", "heavy-top", "--trajectories", "8", "--steps", "20", "--block", "4", "--observe", "energy", "--arithmetic", "plain", "--out", "run")


def test_parts_of_other_processors_are_one_run(bismut, tmp_path, monkeypatch):
    assert bismut(*RUN[:-1], "whole").exit_code == 0
    assert bismut(*RUN, "--blocks", "0:1").exit_code == 0
    monkeypatch.setattr(engine, "processor", lambda: "another processor")
    assert bismut(*RUN, "--blocks", "1:2").exit_code == 0
    merged = bismut("merge", "run")
    assert merged.exit_code == 0, merged.stderr
    np.testing.assert_array_equal(load(tmp_path / "whole")["energy"]["mean"], load(tmp_path / "run")["energy"]["mean"])
    recorded = provenance.read_provenance(open_run(tmp_path / "run"))
    assert recorded["identity"]["arithmetic"] == recorded["run"]["arithmetic"] == "plain"
    assert "machine" not in recorded["identity"]


def test_another_processor_resumes_what_one_began(bismut, tmp_path, monkeypatch):
    """Stopped after its first chunk, and continued elsewhere: the bits of a run that nobody stopped."""
    assert bismut(*RUN[:-1], "whole").exit_code == 0
    seen, real = [], time.monotonic
    with monkeypatch.context() as change:  # the time is up after the first chunk
        change.setattr("bismut.executors.threads.cores", lambda: 1)
        change.setattr(block.Pace, "learn", lambda self, steps, trajectories, seconds: seen.append(steps))
        change.setattr("bismut.ensembles.interruption.time.monotonic", lambda: real() + (1e6 if seen else 0))
        stopped = bismut(*RUN, "--max-time", "1h")
    assert stopped.exit_code == 75, stopped.stderr
    before = provenance.read_provenance(open_run(tmp_path / "run"))["identity"]
    monkeypatch.setattr(engine, "processor", lambda: "another processor")
    resumed = bismut("resume", "run", "--json")
    assert resumed.exit_code == 0, resumed.stderr
    assert '"computed": 0' not in resumed.stdout
    assert provenance.read_provenance(open_run(tmp_path / "run"))["identity"] == before
    for kind in ("mean", "std"):
        np.testing.assert_array_equal(load(tmp_path / "whole")["energy"][kind], load(tmp_path / "run")["energy"][kind])


def test_another_arithmetic_is_another_run(bismut):
    assert bismut(*RUN, "--blocks", "0:1").exit_code == 0
    other = [word if word != "plain" else "fused" for word in RUN]
    assert bismut(*other, "--blocks", "1:2").exit_code == 0  # nodes of a queue may differ until they are merged
    refused = bismut("merge", "run")
    assert refused.exit_code == 2
    assert "arithmetic is fused there, plain here" in refused.stderr


def test_a_word_that_is_no_arithmetic_is_refused(bismut):
    assert "fused" in bismut("run", "heavy-top", "--arithmetic", "exact").stderr


@pytest.fixture
def run():
    scheme = bm.Langevin(entry("heavy-top").build().without_noise(), temperature=1.0, friction=0.5)
    start = scheme.start(np.eye(3), temperature=1.0)
    return scheme, start, {"step": 0.02, "steps": 40, "trajectories": 5, "seed": 3, "progress": False}


def test_starts_steps_and_single_trajectories_have_one_arithmetic(run):
    scheme, start, how = run
    plain, fused = (bm.simulate(scheme, start, arithmetic=name, **how) for name in ("plain", "fused"))
    assert (plain.provenance.arithmetic, fused.provenance.arithmetic) == ("plain", "fused")
    assert np.abs(np.asarray(plain.final.q) - np.asarray(fused.final.q)).max() > 0
    alone = bm.trajectory(scheme, start, step=0.02, steps=40, seed=3, trajectory=2, arithmetic="plain")
    np.testing.assert_array_equal(alone.final.q, np.asarray(plain.final.q)[2])
    with pytest.raises(DomainError, match=r"differ in arithmetic \(fused, plain\)"):
        bm.merge(plain, bm.simulate(scheme, start, arithmetic="fused", first_trajectory=5, **how))


def test_fused_is_refused_where_there_is_none(run, monkeypatch):
    scheme, start, how = run
    monkeypatch.setattr(target, "fuses", lambda: False)
    with pytest.raises(DomainError, match="needs a fused multiply-add"):
        bm.simulate(scheme, start, arithmetic="fused", mode="native", **how | {"trajectories": 6})
    assert engine.Native().arithmetic == "plain"


@pytest.mark.parametrize("name", ["plain", "fused"])
def test_the_arithmetic_of_xla_is_its_own(run, name):
    scheme, start, how = run
    with pytest.raises(DomainError, match=f'arithmetic="{name}" is about the native engine.*Leave out one of the two'):
        bm.simulate(scheme, start, arithmetic=name, mode="xla", **how)
    result = bm.simulate(scheme, start, mode="xla", **how)
    assert result.provenance.arithmetic == result.provenance.machine
