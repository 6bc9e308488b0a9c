"""Commands in a folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bismut.cli.main import app

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bismut(tmp_path, monkeypatch):
    """bismut("run", "oscillator") in an empty folder, in this process: exit_code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def process(tmp_path):
    """The same in a process of its own, begun and not waited for."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax")}
    return lambda *words: subprocess.Popen(
        [sys.executable, "-m", "bismut", *map(str, words)],
        cwd=tmp_path,
        env=environment,
        text=True,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
