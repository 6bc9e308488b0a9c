"""Replay of a failure: the chunk of a trajectory up to the step that failed, and how that step was solved."""

from typing import Any

import jax
import numpy as np

from bismut.compile_cache import compiled
from bismut.engines.engine import Batch, Course, Executable, Schedule
from bismut.ensembles.observers.watcher import Setting
from bismut.flows import kernel
from bismut.formatting import brief
from bismut.mechanics import Scheme, State
from bismut.noise import Path, counter
from bismut.programs.evaluation import evaluate

_TOGETHER = 32  # failures replayed by one call
_LOOKED_AT = 4096  # last states whose energies one call computes, where they may be infinite


def residuals(program: Executable, course: Course, numbers: Any, setting: Setting, before: Batch, which: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """For trajectories of a batch and the step that each did not survive: the residual of that step; NaN if it was solved, and led out of the
    numbers."""
    few = jax.tree.map(lambda leaf: leaf[which], program.states(before))
    batch = program.begin(course, numbers, before.trajectories[which], few, before.step)
    last = jax.tree.map(np.copy, few)
    for k in np.unique(steps):
        if k > batch.step:
            batch, _ = program.advance(course, numbers, batch, Schedule(1, int(k) - batch.step, (0,) * len(setting.watchers)))
        there, now = steps == k, program.states(batch)
        for saved, leaf in zip(jax.tree.leaves(last), jax.tree.leaves(now), strict=True):
            saved[there] = leaf[there]
    values = np.zeros(len(which))
    dtype = setting.scheme.system.dtype
    clock = np.asarray(course.h, dtype), np.asarray(course.t0, dtype)
    for first in range(0, len(which), _TOGETHER):
        part = np.minimum(np.arange(first, first + _TOGETHER), len(which) - 1)
        states = jax.tree.map(lambda leaf, part=part: leaf[part], last)
        residual = _solved(setting.scheme, setting.path, states, counter(before.trajectories[which][part]), counter(steps[part]), *clock)
        values[first : first + _TOGETHER] = np.asarray(residual)[: len(which) - first]
    return values


def beyond_walls(scheme: Scheme, states: State, finished: np.ndarray, t: float) -> int:
    """How many of the finished trajectories are where the energy is infinite although their states are not."""
    some, count, there = State(states.q, states.p), len(finished), finished.copy()
    for leaf in jax.tree.leaves(some):
        there &= np.isfinite(np.asarray(leaf).reshape(count, -1)).all(1)
    beyond, together = 0, min(count, _LOOKED_AT)
    for first in range(0, count, _LOOKED_AT):
        part = np.minimum(np.arange(first, first + together), count - 1)
        energies = _energies(scheme, jax.tree.map(lambda leaf, part=part: np.asarray(leaf)[part], some), np.asarray(t, scheme.system.dtype))
        beyond += int((there[part] & ~np.isfinite(np.asarray(energies)))[: count - first].sum())
    return beyond


def beyond_remark(beyond: int, count: int) -> str:
    """The remark about trajectories that ended beyond a wall."""
    return (
        f"the energy is infinite at the end of {beyond} of {count} trajectories: a wall where U jumps exerts no force that a step could see, so they "
        "went through it. Give U a slope there, such as a soft repulsion"
    )


@compiled
def _energies(scheme: Scheme, states: State, t):
    return jax.vmap(lambda state: scheme.system.energy(state, t))(states)


def not_finite_at(scheme: Scheme, state: State, t: float) -> str:
    """What to do about a first step that leads out of the numbers because a derivative is not finite where it begins; empty if all are."""
    system = scheme.system
    values = {"energy": lambda q: system.hamiltonian(q, state.p, t), "noise": lambda q: system.noise_hamiltonian(q, state.p, t)}
    for name, function in values.items():
        if name == "noise" and not system.channels:
            continue
        slopes = evaluate(jax.jacobian(function), state.q)
        if all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(slopes)):
            continue
        return (
            f"The derivative of the {name} with respect to q is not finite at the start, q = {brief(state.q)}, so no step helps. Look there for a "
            "norm or a square root at 0, for 1/r at r = 0, and for jnp.where around either, whose other branch is differentiated too."
        )
    return ""


@compiled
def _solved(scheme: Scheme, path: Path, states: State, trajectories, steps, h, t0):
    def one(state, trajectory, k):
        t = kernel.time(t0, h, k)
        dW = path.increment(trajectory, k, scheme.channels, h, scheme.system.dtype, clipped=scheme.path_channels)
        solve = kernel.step(scheme, kernel.begin(scheme, state, t), h, dW, t)[1]
        return jax.numpy.where(solve.converged, np.nan, solve.residual)

    return jax.vmap(one)(states, trajectories, steps)
