"""The laws of `move` and `subtract` of a space, measured at random points.

    (q ⊕ v) ⊖ q = v,     q0 ⊕ (q1 ⊖ q0) = q1,     q ⊕ (2v, ½) = q ⊕ v,     q ⊕ 0 = q

The first holds for every v of the shape of `zero`: velocities are coordinates of a frame that exists everywhere, as many as there are degrees of
freedom. Tangent vectors in ambient coordinates are not: on the unit sphere in ℝ³ a velocity across the sphere leads off it, silently. Such a space
is written as a constraint, or by angles, or as a quotient of a group that has a frame.

The frame may turn: a step of free motion, L = ½⟨v, M v⟩, must approach dq = v dt, dp = ad*_v p dt.

A domain of `sample` is a space with points x(q), perhaps a surface g(q) = 0 in it, T its tangents, and a volume element:

    g(q) = 0 with independent gradients,     q(x(q)) = q,     log |dx/dq| − ½ log det TᵀJᵀJT is the same everywhere,  J = ∂x/∂q
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.actions.verlet import Verlet
from bismut.errors import ShapeError
from bismut.findings.finding import Finding, at_most, not_measured, verdict_of
from bismut.findings.report import Report
from bismut.flows import RungeKutta4, flow
from bismut.mechanics import State, mechanical
from bismut.process import check_process
from bismut.programs.evaluation import evaluate
from bismut.spaces import Group, Space, scale

_SAMPLES, _SIZE = 16, 0.3  # how many points, and how large velocities are: well within half a turn
_STEP, _FALLS = 0.1, 0.35  # of free motion; by which its error in one step must fall when h is halved: by ¼ or ⅛, and by ½ where it is wrong
_WALK = 200  # moves of the walk that asks whether points stay on the space

Deviation = Callable[[Space, Any, Any, Any], Any]


def check_space(space: Any, *, seed: int = 0) -> Report:
    """Measure the laws of `move` and `subtract`, and of the group verbs, for a space of your own.

    space  the space, or a domain such as bm.Sphere(2), which is checked with the space it moves on; best before anything runs on it
    seed   of the random points and velocities

    Returns a report as `verify` does: print it, check `report.ok`, or take one finding, `report["velocity comes back"].measured`.
    """
    check_process()
    if isinstance(base := getattr(space, "space", None), Space) and hasattr(space, "log_volume"):
        below = check_space(base, seed=seed)
        return Report(f"{space} on {base}", None, (*below.findings, *_domain(space, seed)))
    if not isinstance(space, Space):
        raise ShapeError(f"check_space needs a configuration space such as SO3() or a class derived from bm.Space, got {type(space).__name__}.")
    eps = float(np.finfo(np.float64 if jax.config.read("jax_enable_x64") else np.float32).eps)
    points, *velocities = _samples(space, seed)
    findings = [_valued(space)]
    for law, function, how in _LAWS if not isinstance(space, Group) else _LAWS + _GROUP_LAWS:
        deviation = evaluate(jax.vmap(lambda *sample, f=function: _largest(f(space, *sample))), points, *velocities)
        findings.append(at_most(law, float(np.max(np.asarray(deviation))), 1e4 * eps, True, how))
    findings.append(_reversed(space, points, velocities, eps))
    findings.append(_free_motion(space, points, velocities, eps))
    findings.append(_walk(space, points, seed, eps))
    return Report(str(space), None, tuple(findings))


def _domain(domain: Any, seed: int) -> list[Finding]:
    """The laws of a domain at random points of it."""
    eps = float(np.finfo(np.float64 if jax.config.read("jax_enable_x64") else np.float32).eps)
    keys = jax.random.split(jax.random.key(seed), _SAMPLES)
    space, bound = domain.space, domain.constraint is not None
    flat = lambda tree: jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])

    def look(key):
        q, zero = domain.random(key), space.zero()
        along = lambda f: jax.jacfwd(lambda e: f(space.nudge(q, space.unflatten(e))))(space.flatten(zero))
        g, G = (domain.constraint(q), along(domain.constraint)) if bound else (jnp.zeros(1), jnp.zeros((1, space.dim)))
        back = _largest(_gap(domain.coordinates(domain.point(q)), q))
        return jnp.max(jnp.abs(g)), G, back, along(lambda q: flat(domain.point(q))), jnp.asarray(domain.log_volume(q), float)

    off, G, back, J, volume = (np.asarray(part) for part in evaluate(jax.vmap(look), keys))
    findings = [at_most("coordinates come back", float(back.max()), 1e4 * eps, True, "coordinates(point(q)) = q")]
    tangents = [np.eye(space.dim)] * _SAMPLES
    if bound:
        rows = G.shape[1]
        values, axes = np.linalg.svd(G)[1:]
        tangents = [one[rows:].T for one in axes]
        findings.append(at_most("random points are on the surface", float(off.max()), 1e4 * eps, True, "g(q) = 0"))
        loss = float((values.max(1) / np.maximum(values.min(1), 1e-300)).max())
        findings.append(at_most("constraints are independent", loss, 1e4, True, "the largest singular value of ∂g over the smallest"))
    area = np.array([0.5 * np.linalg.slogdet(T.T @ j.T @ j @ T)[1] for j, T in zip(J, tangents, strict=True)])
    spread = float(np.ptp(volume - area))
    if space.dim > (G.shape[1] if bound else 0) and J.shape[1] >= space.dim - (G.shape[1] if bound else 0):
        findings.append(at_most("volume element", spread, 1e5 * eps, True, "log |dx/dq| − ½ log det TᵀJᵀJT, largest minus smallest"))
    return findings


def _samples(space: Space, seed: int):
    """Random points, and two batches of random velocities."""
    keys = jax.random.split(jax.random.key(seed), _SAMPLES)
    rng = np.random.default_rng(seed)
    points = evaluate(lambda: jax.vmap(space.random)(keys))
    return points, *(jax.vmap(space.unflatten)(jnp.asarray(_SIZE * rng.normal(size=(_SAMPLES, space.dim)))) for _ in range(2))


def _gap(a: Any, b: Any) -> Any:
    """The difference of two points, velocities or matrices, over their size."""
    return jax.tree.map(lambda x, y: jnp.max(jnp.abs(x - y)) / (1 + jnp.max(jnp.abs(y))), a, b)


def _largest(gaps: Any) -> Any:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(gaps)]))


def _comes_back(space, q, v, w):
    return _gap(space.subtract(space.move(q, v), q), v)


def _point_comes_back(space, q, v, w):
    there = space.move(space.move(q, v), w)
    return _gap(space.move(q, space.subtract(there, q)), there)


def _time_scales(space, q, v, w):
    return _gap(space.move(q, scale(2.0, v), 0.5), space.move(q, v))


def _standing_still(space, q, v, w):
    zero = jax.tree.map(jnp.zeros_like, v)
    return _gap(space.move(q, zero), q), _gap(space.subtract(q, q), zero)


def _frame(space, q, v, w):
    """D(q ⊕ x ⊖ q) at x = 0 is the identity, with a second derivative that exists: what every scheme differentiates."""
    zero = jnp.zeros(space.dim)
    chart = lambda x: space.flatten(space.subtract(space.move(q, space.unflatten(x)), q))
    slope = lambda s: jax.jvp(chart, (s * space.flatten(v),), (space.flatten(w),))[1]
    second = jax.jvp(slope, (0.0,), (1.0,))[1]
    return _gap(jax.jacfwd(chart)(zero), jnp.eye(space.dim)), jnp.where(jnp.isfinite(second).all(), 0.0, jnp.nan)


def _nudge(space, q, v, w):
    zero = jax.tree.map(jnp.zeros_like, v)
    slope = lambda verb: jax.jvp(lambda e: verb(q, e), (zero,), (v,))[1]
    return _gap(slope(space.nudge), slope(space.move))


def _ends(space, q, v, w):
    there = space.move(q, v)
    return _gap(space.ends(q, there, v, w), Space.ends(space, q, there, v, w))


def _bracket(space, q, v, w):
    return _gap(space.bracket_form(q, v), Space.bracket_form(space, q, v))


def _inverse(space, q, v, w):
    return _gap(space.multiply(q, space.inverse(q)), space.origin()), _gap(space.tau(scale(-1.0, v)), space.inverse(space.tau(v)))


def _adjoint(space, q, v, w):
    """dτ⁻¹_{−x} = dτ⁻¹_x Ad_{τ(x)}."""
    return _gap(space.dtau_inv(scale(-1.0, v), w), space.dtau_inv(v, space.Ad(space.tau(v), w)))


_LAWS: tuple[tuple[str, Deviation, str], ...] = (
    ("velocity comes back", _comes_back, "(q ⊕ v) ⊖ q = v for every v; a frame of velocities must exist everywhere"),
    ("point comes back", _point_comes_back, "q0 ⊕ (q1 ⊖ q0) = q1"),
    ("time scales velocity", _time_scales, "q ⊕ (2v for time ½) = q ⊕ v"),
    ("standing still", _standing_still, "q ⊕ 0 = q,  q ⊖ q = 0"),
    ("frame at rest", _frame, "D(q ⊕ x ⊖ q) = 1 at x = 0, and it can be differentiated there"),
    ("nudge", _nudge, "to first order the same as move"),
    ("ends", _ends, "covectors at both ends, as derived from move and subtract"),
)
_GROUP_LAWS: tuple[tuple[str, Deviation, str], ...] = (
    ("bracket", _bracket, "⟨p, [x, y]⟩, as derived from move and subtract"),
    ("inverse", _inverse, "g g⁻¹ = 1,  τ(−x) = τ(x)⁻¹"),
    ("adjoint", _adjoint, "dτ⁻¹(−x) = dτ⁻¹(x) Ad τ(x)"),
)


def _valued(space: Space) -> Finding:
    """A space is a value: programs are kept by it."""
    other = copy.copy(space)
    same = type(space).__hash__ is not None and hash(space) == hash(other) and space == other
    return Finding("is a value", float(not same), 0.0, verdict_of(same), "its copy is equal and has its hash; a frozen dataclass does")


def _reversed(space: Space, points: Any, velocities: list[Any], eps: float) -> Finding:
    """Needed by adjoints and Metropolised steps alone, so a fact and no failure."""
    back = lambda q, v: _largest(_gap(space.move(space.move(q, v), scale(-1.0, v)), q))
    measured = float(np.max(np.asarray(evaluate(jax.vmap(back), points, velocities[0]))))
    reversible = measured <= 1e4 * eps
    how = "(q ⊕ v) ⊕ (−v) = q" if reversible else "(q ⊕ v) ⊕ (−v) is not q: adjoint schemes and Metropolised steps are not to be used here"
    return Finding("runs backwards", measured, 1e4 * eps, verdict_of(True if reversible else None), how)


def _free_motion(space: Space, points: Any, velocities: list[Any], eps: float) -> Finding:
    """Whether a step with L = ½⟨v, M v⟩ approaches dq = v dt, dp = ad*_v p dt: what all verbs together are for."""
    masses = space.unflatten(jnp.linspace(1.0, 2.0, space.dim))
    system = mechanical(space, mass=masses)
    variational, reference = Verlet(system), RungeKutta4(system)

    def missed(q, p, h):
        (a, solve), (b, _) = (flow(scheme).advance(State(q, p), h, jnp.zeros(0), 0.0) for scheme in (variational, reference))
        off = _largest((_gap(space.subtract(a.q, b.q), space.zero()), _gap(a.p, b.p)))
        return jnp.where(solve.converged, off, jnp.nan)

    errors = [np.max(np.asarray(evaluate(jax.vmap(lambda q, p, h=h: missed(q, p, h)), points, velocities[0]))) for h in (_STEP, _STEP / 2)]
    fall = 0.0 if errors[0] <= 1e4 * eps else float(errors[1] / errors[0])
    return at_most("free motion", fall, _FALLS, True, "error of a step with L = T(v), halved step over step: the frame turns as the bracket says")


def _walk(space: Space, points: Any, seed: int, eps: float) -> Finding:
    """How far off the space random moves lead, if it can say so."""
    law = "stays on the space"
    if type(space).violation is Space.violation:
        return not_measured(law, "the space has no violation(q), so every array of the right shape counts as a point")
    rng = np.random.default_rng(seed + 1)
    kicks = jnp.asarray(_SIZE * rng.normal(size=(_WALK, space.dim)))
    walk = lambda q: jax.lax.scan(lambda q, kick: (space.move(q, space.unflatten(kick)), None), q, kicks)[0]
    end = evaluate(walk, jax.tree.map(lambda leaf: leaf[0], points))
    off = float(space.violation(jax.tree.map(np.asarray, end)))
    return at_most(law, off, 1e2 * _WALK * eps, True, f"violation after {_WALK} random moves")
