"""Commands in a folder of their own."""

from functools import partial

import pytest
from typer.testing import CliRunner

from bismut.cli.main import app
from tests.commands import Command


@pytest.fixture
def bismut(tmp_path, monkeypatch):
    """bismut("run", "oscillator") in an empty folder, in this process: exit_code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def process(tmp_path):
    """The same in a process of its own, begun and not waited for."""
    return partial(Command, tmp_path)
