"""Settings of Python, of JAX and of the machine under which nothing can be computed are told in a sentence; under the others everything works."""

import os
import shlex
import subprocess
import sys
from dataclasses import replace

import jax
import pytest

import bismut as bm
from bismut.errors import ProcessError
from bismut.gallery import entry


def bismut(*arguments, python=(), **options):
    command = [sys.executable, *python, "-m", "bismut", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def test_without_docstrings_the_gallery_knows_what_it_holds():
    """`python -OO` drops them."""
    bare = replace(entry("double-well"), module_docstring=None)
    assert bare.title == "Double well: a particle that heat carries over a barrier."
    assert bare.physics == entry("double-well").physics


@pytest.mark.slow
def test_without_docstrings_and_asserts_commands_work(tmp_path):
    told = bismut("run", "pendulum", "--out", str(tmp_path / "run"), "--steps", "10", python=("-OO",))
    assert told.returncode == 0, told.stderr


def test_without_address_space_nothing_is_loaded():
    """With 500 MB, JAX and LLVM abort or never come back."""
    command = f"ulimit -v {500 * 1024} && exec {shlex.quote(sys.executable)} -m bismut run pendulum"
    told = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 1
    assert told.stderr.startswith("bismut: This process may use 500 MB of address space")
    assert len(told.stderr.splitlines()) == 1


@pytest.mark.parametrize("guard", ["jax_transfer_guard", "jax_transfer_guard_host_to_device"])
def test_a_guard_of_transfers_is_told_of(guard):
    before = getattr(jax.config, guard)
    jax.config.update(guard, "disallow")
    try:
        with pytest.raises(ProcessError, match="jax_transfer_guard"):
            bm.mechanical(bm.Euclidean(1))
    finally:
        jax.config.update(guard, before or "allow")


@pytest.mark.slow
def test_a_run_under_the_check_for_leaked_tracers(tmp_path):
    told = bismut("run", "pendulum", "--out", str(tmp_path / "run"), "--steps", "10", env=os.environ | {"JAX_CHECK_TRACER_LEAKS": "1"})
    assert told.returncode == 0, told.stderr
