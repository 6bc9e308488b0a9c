"""Recorded trajectories of a result, a `Trajectory` or a run folder, with their system if it is known; and the quantities that colour bodies.

kinetic energy   ½⟨p, v⟩ of each body          energy          of the complete system, the same for all its bodies
angular speed    |w|                            speed           |v|

A folder names its system by its name in the gallery and never by code, so of a run of a Python model only arrays are known if no system is given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bismut.ensembles import Result, Trajectory
from bismut.errors import BismutError, DomainError
from bismut.gallery import Entry, entry
from bismut.mechanics import State, System
from bismut.programs.evaluation import evaluate
from bismut.store import open_run, read_run


@dataclass(frozen=True)
class Motion:
    """One trajectory: times (frames,), q and p with time along the first axis of each array. `system` is None where it is not known."""

    label: str
    times: np.ndarray
    q: Any
    p: Any
    system: System | None
    picture: Callable[[System, Any], Any] | None = None

    @property
    def configuration(self) -> Any:
        """The argument of a picture: points q; after reduction by symmetry (a, μ)."""
        return (self.q, self.p) if self.system is not None and self.system.reduced else self.q


def motions(source: Any, system: System | Entry | None = None) -> list[Motion]:
    """The recorded trajectories of a Result, a Trajectory, a run folder or a list of them."""
    if isinstance(source, list | tuple) and not isinstance(source, Trajectory):
        several = [motion for one in source for motion in motions(one, system)]
        if not several:
            raise DomainError("view expects at least one result, trajectory or run folder, got an empty list.")
        return several
    if isinstance(source, str | Path):
        return _of_folder(Path(source), system)
    if isinstance(source, Trajectory):
        known = system.system() if isinstance(system, Entry) else system
        label = f"trajectory {int(source.number)}"
        return [Motion(label, np.asarray(source.times), _plain(source.q), _plain(source.p), known, _picture(system))]
    if isinstance(source, Result):
        known = source.request.scheme.system if system is None and source.request is not None else system
        groups = {name: report.dataset() for name, report in source.observables.items()}
        return _of_groups(groups, known.system() if isinstance(known, Entry) else known, _picture(system), source.provenance.sweep, "This result")
    raise DomainError(f"view expects a result, a trajectory or a run folder, got {type(source).__name__}.")


def _plain(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def _picture(system: Any) -> Callable | None:
    return system.picture if isinstance(system, Entry) else None


def _of_folder(folder: Path, system: System | Entry | None) -> list[Motion]:
    if "statistics" not in open_run(folder).committed:
        raise BismutError(f"{folder} holds no statistics yet; `bismut resume {folder}` resumes it.")
    run = read_run(folder)
    named = tomllib.loads(run.configuration).get("system") if run.configuration else None
    picture = _picture(system)
    if isinstance(system, Entry):
        system = system.system((run.provenance.get("model") or {}).get("parameters"))
    elif system is None and isinstance(named, dict) and not run.provenance.get("model"):
        one = entry(named["name"])
        parameters = {name: None if value == "none" else value for name, value in named.get("parameters", {}).items()}  # TOML has no null
        system, picture = one.system(parameters), one.picture
    groups = {str(name): group.to_dataset() for name, group in run.statistics.children.items()}
    return _of_groups(groups, system, picture, run.full_provenance["run"].get("sweep"), str(folder))


def _of_groups(groups: dict[str, Any], system: System | None, picture: Callable | None, sweep: Any, name: str) -> list[Motion]:
    recorded = [
        data for data in groups.values() if {"q", "q0", "p", "p0"} & set(map(str, data)) and "time" in data.dims and "trajectory" in data.dims
    ]
    if not recorded:
        raise BismutError(
            f"{name} holds no trajectories to view, only statistics: {', '.join(groups) or 'none'}. Keep some with "
            "observe={'paths': bm.paths([0, 1])}, or on the command line with `bismut run ... --observe paths`."
        )
    return [motion for data in recorded for motion in _of_data(data, system, picture, [axis for axis in sweep or () if axis in data.dims])]


def _of_data(data: Any, system: System | None, picture: Callable | None, axes: list[str]) -> list[Motion]:
    trajectories = []
    for place in product(*(range(data.sizes[axis]) for axis in axes)):
        one = data.isel(dict(zip(axes, place, strict=True)))
        values = "".join(f", {axis} = {float(one[axis]):g}" for axis in axes)
        for i, number in enumerate(np.asarray(one["trajectory"])):
            q, p = (_tree([np.asarray(one[kind].isel(trajectory=i)) for kind in _kinds(one, letter)], system) for letter in "qp")
            trajectories.append(Motion(f"trajectory {int(number)}{values}", np.asarray(one["time"], float), q, p, system, picture))
    return trajectories


def _kinds(data: Any, letter: str) -> list[str]:
    """q, or q0, q1, ... in their order."""
    return sorted(
        (kind for kind in map(str, data.data_vars) if kind == letter or (kind[:1] == letter and kind[1:].isdigit())), key=lambda k: int(k[1:] or 0)
    )


def _tree(leaves: list[np.ndarray], system: System | None) -> Any:
    """Arrays as a point or a momentum of the space, if they fit."""
    structure = jax.tree.structure(jax.eval_shape(system.space.origin)) if system is not None else None
    if structure is not None and structure.num_leaves == len(leaves):
        return structure.unflatten(leaves)
    return leaves[0] if len(leaves) == 1 else tuple(leaves)


def colours(motion: Motion, bodies: int) -> dict[str, np.ndarray]:
    """Names and numbers (frames, K) to colour bodies by; none for an unknown system."""
    system = motion.system
    if system is None:
        return {}
    if not system.has_lagrangian:  # velocities are not known; the Hamiltonian is
        energy = np.asarray(jax.jit(jax.vmap(lambda q, p, t: system.energy(State(q, p), t)))(motion.q, motion.p, motion.times))
        return {"energy": np.repeat(energy[:, None], bodies, 1)}
    velocity, energy = _of_frames(system, motion)
    values: dict[str, np.ndarray] = {}
    p, v = jax.tree.leaves(motion.p), [np.asarray(leaf) for leaf in jax.tree.leaves(velocity)]
    if len(p) != len(v) or any(a.shape != b.shape for a, b in zip(p, v, strict=True)):
        return values
    per_body = all(leaf.ndim > 1 and leaf[0].size % bodies == 0 for leaf in v)
    if bodies > 1 and per_body:
        values["kinetic energy"] = np.sum([0.5 * _each(a * b, bodies).sum(-1) for a, b in zip(p, v, strict=True)], 0)
    else:
        values["energy"] = np.repeat(energy[:, None], bodies, 1)
    turning = _rotating(motion, len(v))
    for name, angular in (("angular speed", True), ("speed", False)):
        leaves = [leaf for leaf, turns in zip(v, turning, strict=True) if turns == angular]
        if leaves and per_body:
            values[name] = np.linalg.norm(_each(leaves[0], bodies)[..., :3], axis=-1)
    return values


def _each(leaf: np.ndarray, bodies: int) -> np.ndarray:
    return leaf.reshape(len(leaf), bodies, -1)


def _rotating(motion: Motion, count: int) -> list[bool]:
    """Which arrays of the velocity turn something: those whose points are rotations. On SE(3) angular and linear velocity are one array."""
    points = jax.tree.leaves(motion.q)
    square = lambda leaf: leaf.ndim > 2 and leaf.shape[-2:] in ((3, 3), (2, 2))
    if len(points) != count:
        return [square(points[0])] * count
    same = jax.tree.leaves(motion.p)
    return [square(point) and point.shape != momentum.shape for point, momentum in zip(points, same, strict=True)]


def _of_frames(system: System, motion: Motion) -> tuple[Any, np.ndarray]:
    """Velocities and energies of all frames."""

    def one(q, p, t):
        return system.velocity(q, p, t), system.energy(State(q, p), t)

    velocity, energy = evaluate(jax.vmap(one), motion.q, motion.p, motion.times)
    return velocity, np.asarray(energy)
