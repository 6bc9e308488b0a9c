"""Does the machine compute what the program says?

The first steps of a few trajectories through every engine, and once more without any compiler: all must agree to round-off, on the user's own
functions. A run that is cut must go on to the bit. What is drawn must be noise (`drawn`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import Result, perform, request
from bismut.findings.drawn import noise_law
from bismut.findings.finding import Finding, at_most, decided, not_measured
from bismut.findings.order import by_xla, fine_increments, trajectories_for
from bismut.flows import kernel
from bismut.host import evaluate
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener

_STEPS = 8
_LARGEST = 100  # degrees of freedom up to which steps are made without a compiler


def integrity(scheme: Scheme, state: State, *, step: float, seed: int, t0: float = 0.0) -> list[Finding]:
    """Findings on engines, on plain evaluation, on cutting a run, and on the noise that is drawn."""
    dtype = scheme.system.dtype
    eps = float(np.finfo(dtype).eps)
    common = {"step": step, "every": _STEPS, "trajectories": trajectories_for(scheme), "seed": seed, "t0": t0}
    run = lambda steps: perform(request(scheme, state, steps=steps, **common), progress=False)
    whole = run(_STEPS)
    dW = fine_increments(scheme, Wiener(seed), step, _STEPS, trajectories_for(scheme))
    other = by_xla(scheme, state, jnp.asarray(step, dtype), jnp.asarray(dW), jnp.asarray(_STEPS), jnp.asarray(t0, dtype))
    return [
        _engines(whole, other, eps),
        _without_compiler(scheme, state, dW[0], step, t0, other, eps),
        _cut(scheme, run(_STEPS // 2), whole),
        *noise_law(scheme, state.q, Wiener(seed), step, t0),
    ]


def _engines(whole: Result, other: State, eps: float) -> Finding:
    law, engine = "engines agree", whole.request.chosen
    if engine.engine.name != "native":
        return not_measured(law, f"XLA is the only engine that runs this: {engine.why}")
    words = f"largest difference of {_STEPS} steps by the native engine and by XLA, relative"
    return at_most(law, _gap(whole.final, other), 1e6 * eps, True, words)


def _cut(scheme: Scheme, half: Result, whole: Result) -> Finding:
    rest = perform(request(scheme, continue_from=half, steps=_STEPS - _STEPS // 2, every=_STEPS), progress=False)
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(jax.tree.leaves(rest.final), jax.tree.leaves(whole.final), strict=True))
    return Finding(
        "a cut run goes on", 0.0 if same else _gap(rest.final, whole.final), 0.0, decided(same), f"{_STEPS} steps in one piece and in two, to the bit"
    )


def _without_compiler(scheme: Scheme, state: State, dW: np.ndarray, step: float, t0: float, compiled: State, eps: float) -> Finding:
    """Operation by operation in NumPy, against the same steps compiled."""
    law, dtype = "compilers agree", scheme.system.dtype
    if scheme.space.dim > _LARGEST:
        return not_measured(law, f"{scheme.space.dim} degrees of freedom take long without a compiler; up to {_LARGEST} are tried")
    walk = lambda z, h, t0, dW: kernel.walk(scheme, z, h, dW, len(dW), t0)
    plain = evaluate(walk, state, jnp.asarray(step, dtype), jnp.asarray(t0, dtype), jnp.asarray(dW))
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], compiled)
    words = f"largest difference of {_STEPS} steps by XLA and one by one in NumPy, relative"
    return at_most(law, _gap(first, plain), 1e6 * eps, True, words)


def _gap(a, b) -> float:
    gaps = [0.0]
    for one, other in zip(jax.tree.leaves((a.q, a.p)), jax.tree.leaves((b.q, b.p)), strict=True):
        x, y = np.asarray(one, float), np.asarray(other, float)
        both = np.isnan(x) & np.isnan(y)
        gaps.append(float(np.max(np.where(both, 0.0, np.abs(x - y)) / (1 + np.nanmax(np.abs(y), initial=0.0)), initial=0.0)))
    return float(np.max(gaps))
