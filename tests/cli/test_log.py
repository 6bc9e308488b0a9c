"""What the logger `bismut` is told: compiling and blocks at DEBUG. Nothing is heard unless somebody listens, as the command line does when asked."""

import logging
import subprocess
import sys

import jax.numpy as jnp

import bismut as bm
from bismut.cli.log import moved_to_the_front

SMALL = ("--steps", "4", "--trajectories", "4", "--block", "2")


def test_a_run_tells_engine_compiling_and_blocks_at_debug(caplog):
    caplog.set_level(logging.DEBUG, logger="bismut")
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.123 * q @ q))
    bm.simulate(scheme, scheme.start(jnp.ones(1), velocity=jnp.zeros(1)), step=0.1, steps=3, trajectories=6, block=3, progress=False)
    told = [record.getMessage() for record in caplog.records if record.name.startswith("bismut.")]
    assert {record.levelno for record in caplog.records if record.name.startswith("bismut.")} == {logging.DEBUG}
    assert any(line.startswith("VariationalEuler on Euclidean(1): the native engine") for line in told)
    assert sum(line.startswith("compiled for") for line in told) == 1
    assert [line for line in told if "handed out" in line] == ["block 0 handed out", "block 1 handed out"]
    assert sum("done: 3 trajectories, 3 steps after" in line for line in told) == 2


def test_nothing_is_heard_by_default():
    """A program that never speaks of logging: not a word, and no complaint of a logger without a handler."""
    script = "import bismut, logging; logging.getLogger('bismut.any').warning('unheard'); logging.getLogger('bismut').error('unheard')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("bismut").handlers)


def test_v_may_stand_before_or_behind_the_command(bismut):
    before = bismut("-v", "run", "oscillator", *SMALL, "--out", "a")
    behind = bismut("run", "oscillator", *SMALL, "--out", "b", "--log-level", "debug")
    for found in (before, behind):
        assert found.exit_code == 0
        assert "bismut.ensembles.block_log: block 1 done: 2 trajectories, 4 steps" in found.stderr
        assert "handed out" not in found.stdout
    quiet = bismut("run", "oscillator", *SMALL, "--out", "c")
    assert "handed out" not in quiet.stderr
    assert logging.getLogger("bismut").level == logging.NOTSET


def test_an_unknown_level_is_refused_and_a_version_is_told(bismut):
    found = bismut("list", "--log-level=loud")
    assert found.exit_code == 2
    assert "expected one of debug, info, warning, error, got 'loud'" in found.stderr
    assert bismut("--version").stdout.startswith("bismut 0.")


def test_what_follows_two_dashes_is_left_alone():
    assert moved_to_the_front(["run", "x", "-v", "--", "-v"]) == ["-v", "run", "x", "--", "-v"]
    assert moved_to_the_front(["list", "--log-level"]) == ["--log-level", "list"]
