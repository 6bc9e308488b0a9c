"""Disks of their own."""

import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def mounted(tmp_path):
    """A small disk of its own, where this process may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options: str) -> Path:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("mounting is not allowed here")
        return folder

    yield mount
    subprocess.run(["umount", str(folder)], capture_output=True, check=False)
