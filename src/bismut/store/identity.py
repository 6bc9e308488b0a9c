"""What makes two runs the same: everything that decides their bits, as a table of words and numbers.

    numbers of the run  ·  size of a block  ·  dtype, engine, machine, versions, code of bismut  ·  fingerprints of scheme, noise, start and observers

It is written down when a run begins, and compared when somebody wants to go on with it: what differs is named.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax

from bismut.ensembles import Request
from bismut.mechanics import Maxwell
from bismut.sameness import fingerprint, fingerprint_of_arrays, package_hash
from bismut.store.manifest import plain

DECIDING = ("bismut", "jax", "jaxlib", "numpy", "llvmlite")  # packages whose versions decide bits
CODE = "code"  # of bismut itself
GROWING = ("steps", "trajectories")  # of which a run can be given more


def identity(request: Request) -> dict[str, Any]:
    """All of that, as JSON holds it."""
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
    made_by = {"dtype": request.scheme.system.precision, "engine": engine.name, "machine": engine.machine, "python": platform.python_version()}
    made_by |= {CODE: package_hash(), **{f"version.{name}": _version(name) for name in DECIDING}}
    functions = {"scheme": fingerprint(request.scheme), "noise": fingerprint(path), "start": _start(request)}
    functions |= {f"observe.{name}": fingerprint(watcher) for name, watcher in request.watchers}
    return plain({**numbers, **made_by, **functions})


def _start(request: Request) -> str | None:
    drawn = [fingerprint(start) for start in request.starts if isinstance(start, Maxwell)]
    return fingerprint_of_arrays(jax.tree.leaves(request.starts)) + "".join(one or "" for one in drawn[:1])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, str]:
    """What differs between a stored run and this one, in words, by name."""
    found = {}
    for name in (*here, *(name for name in there if name not in here)):
        stored, asked = there.get(name), here.get(name)
        if stored is None and asked is None:
            found[name] = f"{name} holds something that cannot be inspected, so it cannot be compared"
        elif stored != asked:
            found[name] = _told(name, stored, asked)
    return found


def _told(name: str, stored: Any, asked: Any) -> str:
    if name.startswith("observe.") and (stored is None or asked is None):
        return f"{name} is {'not observed there' if stored is None else 'observed there only'}"
    if name in ("scheme", "noise", "start") or name.startswith("observe."):
        return f"{name} is another: its functions or numbers differ"
    if name == CODE:
        there = "is not recorded there, because an earlier version wrote the run" if stored is None else f"has the hash {stored} there, {asked} here"
        return f"the code of bismut {there}"
    return f"{name} is {stored} there, {asked} here"


def growth(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, int]:
    """How many steps and trajectories are asked for beyond those of a stored run, where more are."""
    return {name: here[name] - there[name] for name in GROWING if name in there and here[name] > there[name]}
