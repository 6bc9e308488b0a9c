"""Does the machine compute what the program says?

The first steps of a few trajectories through every engine, and once more without any compiler: all must agree to round-off, on the user's own
functions. A run that is cut in two must be continued to the bit. The increments drawn must have the law of the noise (`noise_law`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import Result, complete_run, request
from bismut.findings.checks import Study, check
from bismut.findings.convergence_study import copies, final_states_by_xla, fine_increments, trajectories_for
from bismut.findings.finding import Finding, at_most, not_measured, verdict_of
from bismut.findings.noise_law import noise_law
from bismut.flows import kernel
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener
from bismut.programs.evaluation import evaluate
from bismut.registry import CHECKS

_STEPS = 8
_LARGEST = 100  # degrees of freedom up to which steps are made without a compiler


@CHECKS.register
@check("integrity", ("engines agree",), rank=60, cost=5.0, label=("integrity",))
def integrity(study: Study) -> list[Finding]:
    """Engines, plain evaluation, a run that is cut, and the noise that is drawn."""
    if not study.integrity:
        return []
    scheme, state, path, count = study.scheme, study.state, Wiener(study.seed), trajectories_for(study.scheme)
    common = {"step": study.step, "every": _STEPS, "trajectories": count, "seed": study.seed, "t0": study.t0}
    run = lambda steps: complete_run(request(scheme, state, steps=steps, **common))
    uncut = run(_STEPS)
    dW = fine_increments(scheme, path, study.step, _STEPS, count)
    by_xla = final_states_by_xla(scheme, copies(state, count), study.step, dW, _STEPS, study.t0)
    return [
        _engines(uncut, by_xla, study.eps),
        _without_compiler(study, dW[0], by_xla),
        _cut(scheme, run(_STEPS // 2), uncut),
        *noise_law(scheme, state.q, path, study.step, study.t0),
    ]


def _engines(uncut: Result, by_xla: State, eps: float) -> Finding:
    law, engine = "engines agree", uncut.request.engine_plan
    if engine.engine.name != "native":
        return not_measured(law, f"XLA is the only engine that runs this: {engine.why}")
    how = f"largest difference of {_STEPS} steps by the native engine and by XLA, relative"
    return at_most(law, _gap(uncut.final, by_xla), 1e6 * eps, True, how)


def _cut(scheme: Scheme, half: Result, uncut: Result) -> Finding:
    rest = complete_run(request(scheme, continue_from=half, steps=_STEPS - _STEPS // 2, every=_STEPS))
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(jax.tree.leaves(rest.final), jax.tree.leaves(uncut.final), strict=True))
    gap = 0.0 if same else _gap(rest.final, uncut.final)
    return Finding("a cut run goes on", gap, 0.0, verdict_of(same), f"{_STEPS} steps in one piece and in two, to the bit")


def _without_compiler(study: Study, dW: np.ndarray, by_xla: State) -> Finding:
    """Operation by operation in NumPy, against the same steps compiled."""
    law, scheme, dtype = "compilers agree", study.scheme, study.system.dtype
    if scheme.space.dim > _LARGEST:
        return not_measured(law, f"{scheme.space.dim} degrees of freedom take long without a compiler; up to {_LARGEST} are tried")
    walk = lambda z, h, t0, dW: kernel.walk(scheme, z, h, dW, len(dW), t0)
    by_numpy = evaluate(walk, study.state, study.h, jnp.asarray(study.t0, dtype), jnp.asarray(dW))
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], by_xla)
    how = f"largest difference of {_STEPS} steps by XLA and one by one in NumPy, relative"
    return at_most(law, _gap(first, by_numpy), 1e6 * study.eps, True, how)


def _gap(a: Any, b: Any) -> float:
    gaps = [0.0]
    for one, other in zip(jax.tree.leaves((a.q, a.p)), jax.tree.leaves((b.q, b.p)), strict=True):
        x, y = np.asarray(one, float), np.asarray(other, float)
        both = np.isnan(x) & np.isnan(y)
        gaps.append(float(np.max(np.where(both, 0.0, np.abs(x - y)) / (1 + np.nanmax(np.abs(y), initial=0.0)), initial=0.0)))
    return float(np.max(gaps))
