"""Small measurements that several facts share.

mean over a coin     E f(ΔW) with ΔW = ±√h: equal to the Gaussian mean for an f quadratic in ΔW, and so an exact expectation without sampling
step                 one step under given increments
spread               how far a function of the state strays from its first value along a trajectory
ensemble             the mean of an observable at the end of a run of many trajectories
"""

from collections.abc import Callable
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import simulate
from bismut.flows import flow
from bismut.gallery.entry import Trial
from bismut.mechanics import Scheme, State
from bismut.programs.evaluation import evaluate


def step(scheme: Scheme, state: State, h, dW) -> State:
    """The state after one step."""
    real = lambda x: jnp.asarray(x, scheme.system.dtype)
    return evaluate(lambda state, h, dW: flow(scheme).advance(state, h, dW, 0.0)[0], state, real(h), real(dW))


def coin_mean(scheme: Scheme, state: State, step: float, f: Callable[[State], jax.Array]) -> float:
    """The mean of f after one step over all signs of ΔW = ±√h."""
    signs = jnp.sqrt(step) * jnp.asarray(list(product((-1.0, 1.0), repeat=scheme.channels)), scheme.system.dtype)
    after = jax.vmap(lambda dW: f(flow(scheme).advance(state, jnp.asarray(step, scheme.system.dtype), dW, 0.0)[0]))
    return float(jnp.mean(evaluate(after, signs)))


def spread(trial: Trial, f: Callable[[State], jax.Array]) -> float:
    """The largest departure of f from its first value along the trajectory of a trial, relative to the size of f (or to 1, if that is larger)."""
    values = np.asarray(evaluate(jax.vmap(f), trial.trajectory.states))
    return float(np.abs(values - values[0]).max() / max(1.0, np.abs(values[0]).max()))


def largest(trial: Trial, f: Callable[[State], jax.Array]) -> float:
    """The largest |f| along the trajectory of a trial."""
    return float(np.abs(np.asarray(evaluate(jax.vmap(f), trial.trajectory.states))).max())


def symmetry_spread(trial: Trial, name: str) -> float:
    """How far a momentum map strays on the noisy trajectory of a trial."""
    return spread(trial, lambda state: trial.system.momentum_map(name, state))


def ensemble_mean(scheme: Scheme, start, f: Callable[[State], jax.Array], *, step: float, steps: int, trajectories: int, records: int = 1) -> float:
    """The mean of f over trajectories and over the last `records` of ten records of a run."""
    result = simulate(
        scheme, start, step=step, steps=steps, trajectories=trajectories, seed=11, observe={"f": f}, every=max(steps // 10, 1), progress=False
    )
    return float(result["f"].mean.values[-records:].mean())
