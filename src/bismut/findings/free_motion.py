"""Transport of free motion: what no temperature shows.

    without forces    q' ⊖ q = K p + N z,    p' = C p + S z        ⟹    D = G Gᵀ/2h,   G = K (1 − C)⁻¹ S + N      against kT Γ⁻¹
    in a force F      p grows by L F, q by Q F                     ⟹    v = [K (1 − C)⁻¹ L + Q] F/h               against Γ⁻¹ F

The matrices are derivatives of the step itself, with potential and forces left out, at rest: nothing is sampled, and the result is exact where free
motion is linear, elsewhere for slow motion (kT → 0). ΓD/kT has the eigenvalues that a splitting claims at the rates λ of ΓM⁻¹: (λh/2) coth(λh/2)
for BAOAB, ABOBA and OBABO, 1 for GJI and where transport is exact.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from bismut.findings.checks import Study, check
from bismut.findings.finding import Finding, not_measured, verdict_of
from bismut.findings.structure import LARGEST
from bismut.flows import Langevin, Metropolised
from bismut.mechanics import Scheme, State
from bismut.mechanics.friction import NoFriction
from bismut.mechanics.function import UserFunction
from bismut.mechanics.subsystems import free_motion
from bismut.programs.evaluation import evaluate
from bismut.registry import CHECKS

_LAWS = ("free diffusion", "free drift")
_DIGITS = 1e-9  # relative, that a factor may differ from what is claimed, in double precision


def _diffuses(scheme: Scheme) -> bool:
    return (
        isinstance(scheme, Langevin)
        and not isinstance(scheme.friction, NoFriction)
        and not isinstance(scheme.splitting, Metropolised)
        and not scheme.temperature.zero
        and scheme.schedule is None
        and not scheme.moving.channels
    )


@CHECKS.register
@check("accuracy", _LAWS, rank=52, applies=_diffuses)
def transport_of_free_motion(study: Study) -> list[Finding]:
    """Diffusion and drift without potentials, over kT/Γ and 1/Γ: the factor farthest from what is claimed, or from 1."""
    if not study.order:
        return []
    scheme, system, n = study.scheme, study.system, study.scheme.space.dim
    assert isinstance(scheme, Langevin)
    if system.constraints or n > LARGEST:
        why = "on a surface there are no free directions" if system.constraints else f"{n} degrees of freedom; up to {LARGEST} are tried"
        return [not_measured(law, why) for law in _LAWS]
    q, t, h = study.state.q, study.t0, study.step
    kT = float(scheme.kT(t))
    drags = lambda q: jax.vmap(lambda v: scheme.friction.drag(system, q, v, t, scheme.kT(t)))(jnp.eye(n, dtype=system.dtype))
    Gamma, M = (np.asarray(part, float) for part in evaluate(lambda q: (drags(q), system.mass(q, None, t)), q))
    rates = scipy.linalg.eigh((Gamma + Gamma.T) / 2, M, eigvals_only=True)
    if rates[0] <= 1e-12 * rates[-1]:
        return [not_measured(law, "without friction in some direction, free motion there is ballistic") for law in _LAWS]
    K, C, N, S, Q, L = _derivatives(scheme, q, h, t)
    chain = lambda pushes, moves: K @ np.linalg.solve(np.eye(n) - C, pushes) + moves
    D, mobility = chain(S, N) @ chain(S, N).T / (2 * h), chain(L, Q) / h
    claimed = scheme.splitting.free_diffusion(jnp.asarray(rates * h))
    claims = None if claimed is None else np.sort(np.asarray(claimed, float))
    findings = []
    for law, tensor, what in zip(_LAWS, (D / kT, mobility), ("D/(kT/Γ)", "velocity/(F/Γ)"), strict=True):
        factors = np.sort(np.linalg.eigvals(Gamma @ tensor).real)
        off = (
            np.abs(factors - 1) if claims is None else np.abs(factors - claims) + 1e-3 * _DIGITS * np.abs(factors - 1)
        )  # of equal ones the largest factor
        worst = int(np.argmax(off))
        findings.append(_factor(law, float(factors[worst]), None if claims is None else float(claims[worst]), what, rates * h, study))
    return findings


def _factor(law: str, measured: float, claimed: float | None, what: str, x: np.ndarray, study: Study) -> Finding:
    limit = _DIGITS if study.eps < 1e-10 else 1e3 * study.eps
    span = f"γh = {x[-1]:.3g}" if x[-1] - x[0] < 1e-9 * x[-1] else f"γh from {x[0]:.3g} to {x[-1]:.3g}"
    how = f"{what} of free motion is {measured:.5g} at {span}, from derivatives of a step"
    if claimed is None:
        return Finding(law, float(measured), np.inf, verdict_of(None), f"{how}; not claimed")
    verdict = verdict_of(abs(measured - claimed) <= limit * abs(claimed))
    return Finding(law, float(measured), limit, verdict, f"{how}; claimed {claimed:.5g}", expected=claimed)


def _derivatives(scheme: Langevin, q: Any, h: float, t: float) -> tuple[np.ndarray, ...]:
    """K, C, N, S, Q and L: of q' ⊖ q and p' by p, z and F, at rest."""
    space, dtype, n, r = scheme.space, scheme.system.dtype, scheme.space.dim, scheme.channels
    alone = free_motion(scheme.system)

    def step(q, x):
        p, z, F = x[:n], x[n : n + r], x[n + r :]
        other = copy(scheme)
        push = UserFunction("force", lambda q, v: space.unflatten(F), ())
        system = scheme.system.replace(_lagrangian=alone._lagrangian, _potential=alone._potential, _force=push, dissipation=None)
        object.__setattr__(other, "system", system)  # fields are frozen once `__init__` is over
        new, _ = other.advance(State(q, space.unflatten(p)), jnp.asarray(h, dtype), jnp.sqrt(jnp.asarray(h, dtype)) * z, t)
        return jnp.concatenate([space.flatten(space.subtract(new.q, q)), space.flatten(new.p)])

    rest = jnp.zeros(2 * n + r, dtype)
    J = np.asarray(evaluate(lambda q, x: jax.jacfwd(lambda x: step(q, x))(x), q, rest), float)
    moved, momentum = J[:n], J[n:]
    return tuple(part for cut in (slice(0, n), slice(n, n + r), slice(n + r, None)) for part in (moved[:, cut], momentum[:, cut]))
