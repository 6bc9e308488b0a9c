"""Where a run comes from, and what makes two runs the same.

    identity = numbers of the run · size of a block · dtype, engine, arithmetic, versions, code · fingerprints of scheme, noise, start, observers

The identity is a flat table of everything that decides the bits of a run. It is written when a run begins, with command, commit, machine and devices,
and compared when the run is resumed: differences are reported by name. Processor, operating system and Python are recorded, and decide nothing.
"""

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

from bismut.documents import json_value, parsed
from bismut.ensembles import Request
from bismut.errors import StoreError
from bismut.function_hash import fingerprint, fingerprint_of_arrays, package_hash
from bismut.mechanics import Maxwell
from bismut.registry import extension_versions
from bismut.store import rules
from bismut.store.layout import PROVENANCE
from bismut.store.run_reader import StoredRun

PACKAGES = ("bismut", "jax", "jaxlib", "numpy", "equinox", "scipy", "xarray", "llvmlite")
DECIDING = ("bismut", "jax", "jaxlib", "numpy", "llvmlite")  # packages whose versions decide bits
CODE = "code"  # of bismut itself
GROWING = ("steps", "trajectories")  # of which a run can be given more
_INFORMATION = ("machine", "python")  # which earlier versions took for deciding
_FUNCTIONS = ("scheme", "noise", "start")


def run_provenance(request: Request, command: str, model: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The contents of provenance.json at the beginning of a run; `model` describes the Python file that the system came from."""
    return {
        "began": now(),
        "command": command,
        "identity": identity(request),
        "seed": request.path.seed_number,
        "versions": {"python": platform.python_version(), **versions()},
        "commit": _commit(),
        "machine": {"system": platform.platform(), "processor": platform.machine(), "engine": request.settle().engine.machine},
        "devices": [f"{device.platform}: {device.device_kind}" for device in jax.local_devices()[: request.devices]],
        "dtype": request.scheme.system.precision,
        "block": request.size,
        **({} if model is None else {"model": dict(model)}),
    }


def read_provenance(stored: StoredRun) -> dict[str, Any]:
    """The contents of provenance.json so far."""
    return parsed(stored.text(PROVENANCE, "{}"), str(stored.folder / PROVENANCE), rules.PROVENANCE)


def identity_of(stored: StoredRun) -> dict[str, Any]:
    """The identity of a stored run."""
    recorded = read_provenance(stored).get("identity")
    if not isinstance(recorded, dict):
        raise StoreError(f"{stored.folder} does not record what it was made from, so it cannot be resumed. Choose another folder.")
    return recorded


def identity(request: Request) -> dict[str, Any]:
    """The identity of the run that a request would make, as JSON holds it."""
    path, engine = request.path, request.settle().engine
    numbers = {
        "steps": request.steps,
        "trajectories": request.trajectories,
        "step": request.step,
        "every": request.every,
        "burn_in": request.burn_in,
        "t0": request.t0,
        "first_trajectory": request.first,
        "steps_before": request.done,
        "until": dict(request.until),
        "sweep": {name: values.tolist() for name, values in request.axes.items()},
        "seed": path.seed_number,
        "final": request.keep_final,
        "block": request.size,
    }
    software = {"dtype": request.scheme.system.precision, "engine": engine.name, "arithmetic": engine.arithmetic}
    software |= {CODE: package_hash(), **{f"version.{name}": _version(name) for name in DECIDING}}
    functions = {"scheme": fingerprint(request.scheme), "noise": fingerprint(path), "start": _start_fingerprint(request)}
    functions |= {f"observe.{name}": fingerprint(watcher) for name, watcher in request.watchers}
    return json_value({**numbers, **software, **functions})


def _start_fingerprint(request: Request) -> str:
    drawn = [fingerprint(start) for start in request.starts if isinstance(start, Maxwell)]
    return fingerprint_of_arrays(jax.tree.leaves(request.starts)) + "".join(one or "" for one in drawn[:1])


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, str]:
    """Entries by which the identity of a stored run differs from that of a request, each with a sentence."""
    sentences = {}
    for name in (*here, *(name for name in there if name not in here and name not in _INFORMATION)):
        stored, asked = there.get(name), here.get(name)
        if stored is None and asked is None:
            sentences[name] = f"{name} holds something that cannot be inspected, so it cannot be compared"
        elif stored != asked:
            sentences[name] = _difference(name, stored, asked)
    return sentences


def sentences_of(differing: Mapping[str, str]) -> list[str]:
    """What is said of differences. Functions made by other code of bismut have other fingerprints, whoever changed what: that is one sentence."""
    made = [name for name in differing if name in _FUNCTIONS or (name.startswith("observe.") and differing[name].endswith(_ANOTHER))]
    if CODE not in differing or not made:
        return list(differing.values())
    code = f"{differing[CODE]}, so that it cannot be said whether {', '.join(made)} are the same"
    return [code, *(sentence for name, sentence in differing.items() if name != CODE and name not in made)]


_ANOTHER = "is another: its functions or numbers differ"


def _difference(name: str, stored: Any, asked: Any) -> str:
    if name.startswith("observe.") and (stored is None or asked is None):
        return f"{name} is {'not observed there' if stored is None else 'observed there only'}"
    if name in _FUNCTIONS or name.startswith("observe."):
        return f"{name} {_ANOTHER}"
    if name == CODE:
        there = "is not recorded there, because an earlier version wrote the run" if stored is None else f"has the hash {stored} there, {asked} here"
        return f"the code of bismut {there}"
    return f"{name} is {stored} there, {asked} here"


def growth(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, int]:
    """How many steps and trajectories are asked for beyond those of a stored run, where more are."""
    return {name: here[name] - there[name] for name in GROWING if name in there and here[name] > there[name]}


def forceable(name: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Whether an entry may differ with --force: then numbers come from two programs, which agree to round-off. Nothing else is mixed."""
    return is_software(name) or name in _FUNCTIONS or (name.startswith("observe.") and name in there and name in here)


def is_software(name: str) -> bool:
    """Whether an entry says which software or arithmetic computed, and not what."""
    return name in ("arithmetic", CODE) or name.startswith("version.")


def source_hash(text: str) -> str:
    """The SHA-256 of a model's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def versions() -> dict[str, str]:
    """Versions of the packages that take part in a computation, and of those that extend bismut."""
    return {**{name: _version(name) for name in PACKAGES}, **extension_versions()}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


@cache
def _commit() -> str | None:
    """The commit of bismut if it is run from a checkout, with -dirty if files were changed since; None for an installed one."""
    here = Path(__file__).resolve()
    git = lambda *arguments: subprocess.run(
        ["git", "-C", str(here.parent), *arguments], check=True, capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL
    ).stdout.strip()
    try:
        git("ls-files", "--error-unmatch", here.name)  # a checkout of bismut, and not one in which it is installed
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
