"""Where a run comes from, written down when it begins: command, versions, commit, machine, devices, and what makes it the run it is."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import time
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from bismut.ensembles import Request
from bismut.store.identity import identity

PACKAGES = ("bismut", "jax", "jaxlib", "numpy", "equinox", "scipy", "xarray", "llvmlite")


def origin(request: Request, command: str, model: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What provenance.json holds from the beginning; `model` tells of the Python file that the system came from."""
    return {
        "began": now(),
        "command": command,
        "identity": identity(request),
        "seed": request.path.seed_number,
        "versions": {"python": platform.python_version(), **versions()},
        "commit": commit(),
        "machine": {"system": platform.platform(), "processor": platform.machine(), "engine": request.settle().engine.machine},
        "devices": [f"{device.platform}: {device.device_kind}" for device in jax.local_devices()[: request.devices]],
        "dtype": request.scheme.system.precision,
        "block": request.size,
        **({} if model is None else {"model": dict(model)}),
    }


def source_hash(text: str) -> str:
    """The SHA-256 of a model's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def versions() -> dict[str, str]:
    """Versions of what computes."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


@cache
def commit() -> str | None:
    """The commit of bismut if it is run from a checkout, with -dirty if files were changed since; None for an installed one."""
    here = Path(__file__).resolve()
    ask = lambda *words: subprocess.run(
        ["git", "-C", str(here.parent), *words], check=True, capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL
    ).stdout.strip()
    try:
        ask("ls-files", "--error-unmatch", here.name)  # a checkout of bismut, and not of somebody who has it installed within
        return ask("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
