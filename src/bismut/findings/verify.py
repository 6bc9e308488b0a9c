"""What a scheme claims, measured: `verify` gives findings, and a finding can fail.

Each finding names a law, what was claimed, what was measured and the limit that separates the two. Claims that a scheme does not make are measured
all the same and shown as facts: that Euler–Maruyama is not symplectic is no failure of Euler–Maruyama.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from bismut.actions import Action, Verlet
from bismut.ensembles import trajectory
from bismut.ensembles.checks import check_start, check_step, one_start
from bismut.ensembles.explaining import ensemble_words
from bismut.errors import BismutError, nearest
from bismut.findings.order import Convergence, convergence
from bismut.findings.structure import step_structure
from bismut.flows import Flow, Langevin, Metropolised, RungeKutta4, Variational, action_differential
from bismut.mechanics import Scheme, State, System
from bismut.mechanics.constraint import jacobian, rate
from bismut.noise import Wiener, words
from bismut.showing import Words, table

_STEPS = 200  # of the trajectory along which conservation is measured
_CHEAP = {"xla_backend_optimization_level": 0}  # for what is run once: compiling is the cost


@dataclass(frozen=True)
class Finding:
    """One law: `held` is None where nothing was claimed."""

    law: str
    measured: float
    limit: float
    held: bool | None
    words: str

    @property
    def mark(self) -> str:
        """✓ held, ✗ failed, · not claimed."""
        return {True: "✓", False: "✗", None: "·"}[self.held]

    def __str__(self):
        return f"{self.mark} {self.law:<28} {self.measured:>10.3g}   {self.words}"


@dataclass(frozen=True)
class Report:
    """All findings about one scheme; `ok` unless a claim failed."""

    scheme: str
    step: float
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.held is not False for finding in self.findings)

    def __getitem__(self, law: str) -> Finding:
        found = {finding.law: finding for finding in self.findings}
        if law not in found:
            raise BismutError(f"There is no finding {law!r}. {nearest(law, found)}")
        return found[law]

    def __repr__(self):
        return "\n".join([self._head(), *(f"  {finding}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        rows = [(finding.mark, finding.law, f"{finding.measured:.3g}", finding.words) for finding in self.findings]
        return table(self._head(), rows, ("", "law", "measured", "how"))

    def _head(self) -> str:
        return f"{self.scheme}, step {self.step:g}: {'every claim held' if self.ok else 'A CLAIM FAILED'}"


def verify(scheme: Scheme, start, *, step: float, seed: int = 0, order: bool = True) -> Report:
    """Measure symplecticity, phase volume, momentum maps, the variational principle, the solve, and the order of a scheme.

    start  a state at which, and from which, things are measured
    step   the step h of the measurements
    seed   of the noise
    order  whether orders are measured, which takes longest

    Returns a report: print it, ask `report.ok`, or take one finding, `report["symplectic defect"].measured`.
    """
    check_step(step)
    path = Wiener(seed)
    state = one_start(start, path, 0, check_start(scheme, start))
    system, claims = scheme.system, scheme.claims
    eps = float(np.finfo(system.dtype).eps)
    h = jnp.asarray(step, system.dtype)
    conservative = not system.forced

    findings = []

    def structure(state: State):
        # Three times the usual increment, so that a defect proportional to the noise is not missed.
        return step_structure(scheme, state, h, 3 * path.increment(words(0), words(0), scheme.channels, h, system.dtype))

    defect, volume, scale = map(float, jax.jit(structure, compiler_options=_CHEAP)(state))
    claimed = claims.symplectic and conservative
    limit = 5e4 * eps * scale
    findings.append(_at_most("symplectic defect", defect, limit, claimed, "max |TᵀΩT − Ω| of one step"))
    findings.append(_volume(scheme, volume, step, limit, claimed))
    run = trajectory(scheme, state, step=step, steps=_STEPS, path=path)
    if system.symmetries:
        findings += _noether(scheme, run.states, eps, claims.momentum_maps and conservative)
    if system.constraints:
        findings += _constraints(scheme, run.states, eps)
    if isinstance(scheme, Action):
        findings.append(_stationary(scheme, run.states, path, step, eps))
    solved = bool(np.all(run.solve.converged))
    worst, most = float(np.max(run.solve.residual)), int(np.max(run.solve.iterations))
    findings.append(Finding("solve", worst, np.inf, solved, f"largest residual of {_STEPS} steps, at most {most} iterations each"))
    if order and system.has_lagrangian and claims.order is not None:
        findings += _orders(scheme, state, step, seed)
    return Report(scheme.title, float(step), tuple(findings))


def _at_most(law: str, measured: float, limit: float, claimed: bool, words: str) -> Finding:
    return Finding(law, measured, limit, measured <= limit if claimed else None, f"{words}; {f'limit {limit:.1g}' if claimed else 'not claimed'}")


def _volume(scheme: Scheme, volume: float, step: float, limit: float, claimed: bool) -> Finding:
    """One for a symplectic step; e^{−h tr ΓM⁻¹} for a bath whose friction is the same everywhere."""
    if isinstance(scheme, Langevin) and not isinstance(scheme.splitting, Metropolised) and scheme.schedule is None:
        shrinking = scheme.friction.contraction(scheme.system)
        if shrinking is not None:
            words = f"|det − e^(−h tr ΓM⁻¹)| of one step (factor {volume:.12g})"
            return _at_most("phase volume", abs(volume - float(np.exp(-step * shrinking))), limit, not scheme.moving.forced, words)
    return _at_most("phase volume", abs(volume - 1), limit, claimed, f"|det − 1| of one step (factor {volume:.12g})")


def _constraints(scheme: Scheme, states: State, eps: float) -> list[Finding]:
    """g(q) and its rate along a noisy trajectory."""
    system = scheme.system
    off = jax.jit(jax.vmap(lambda s: (system.constraint(s.q), rate(system, s.q, system.velocity(s.q, s.p)))))(states)
    size = 1 + max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves((states.q, states.p)))
    laws = (("constraints", "largest |g(q)|"), ("rate of constraints", "largest |G v|"))
    return [
        _at_most(law, float(jnp.max(jnp.abs(values))), 1e3 * eps * size**2, True, f"{words} in {_STEPS} noisy steps")
        for (law, words), values in zip(laws, off, strict=True)
    ]


def _noether(scheme: Scheme, states: State, eps: float, claimed: bool) -> list[Finding]:
    """A momentum map is claimed to be kept only if L and every γ_i are invariant."""
    system = scheme.system
    maps = jax.jit(jax.vmap(lambda s: {name: system.momentum_map(name, s) for name in system.symmetries}), compiler_options=_CHEAP)(states)
    changes = jax.jit(lambda s: _changes(system, s), compiler_options=_CHEAP)(jax.tree.map(lambda leaf: leaf[0], states))
    found = []
    for name in system.symmetries:
        values = np.asarray(maps[name])
        size = max(float(np.abs(values).max()), 1e-300)
        drift = float(np.abs(values - values[0]).max()) / size
        invariant = claimed and float(changes[name]) < (1e-10 if system.dtype == np.float64 else 1e-4)
        found.append(_at_most(f"momentum map {name!r}", drift, 1e3 * eps, invariant, f"largest relative change in {_STEPS} noisy steps"))
    return found


def _changes(system: System, state: State) -> dict[str, Array]:
    """The relative change of L and γ, to first order, when q, and v with it, is moved by a symmetry; zero if they are invariant."""
    space, v = system.space, system.velocity(state.q, state.p)

    def change(generator):
        def moved(s):
            q = space.move(state.q, generator(space, state.q), s)
            # v is carried along: the velocity of the moved curve.
            curve = lambda e: space.move(space.move(state.q, v, e), generator(space, space.move(state.q, v, e)), s)
            u = jax.jvp(lambda e: space.subtract(curve(e), q), (jnp.zeros_like(s),), (jnp.ones_like(s),))[1]
            return jnp.append(system.noise(q), system.lagrangian(q, u))

        zero = jnp.zeros((), system.dtype)
        value, slope = jax.jvp(moved, (zero,), (jnp.ones_like(zero),))
        return jnp.max(jnp.abs(slope)) / (1 + jnp.max(jnp.abs(value)))

    return {name: jnp.max(jnp.stack([change(one) for one in symmetry.generators])) for name, symmetry in system.symmetries.items()}


def _stationary(scheme: Action, states: State, path: Wiener, step: float, eps: float) -> Finding:
    h = jnp.asarray(step, scheme.system.dtype)
    if scheme.explicit_force and scheme.system.forced:
        return Finding(
            "action stationary", float("nan"), np.inf, None, "not measured: an explicit force sees the momentum, which a path of points does not show"
        )
    size = float(jnp.max(jnp.abs(scheme.space.flatten(jax.tree.map(lambda leaf: leaf[0], states.p))))) + 1.0

    def slope_of(q):
        return action_differential(scheme, q, h, path.increments(0, _STEPS, scheme.channels, step, scheme.system.dtype))

    slopes = np.asarray(jax.jit(slope_of, compiler_options=_CHEAP)(states.q))
    if scheme.system.constraints:
        inner = jax.tree.map(lambda leaf: leaf[1:-1], states.q)
        slopes = _tangential(slopes, np.asarray(jax.jit(jax.vmap(lambda q: jacobian(scheme.system, q)))(inner)))
    slope = float(np.abs(slopes).max())
    return _at_most("action stationary", slope, 1e3 * eps * size / step, True, "largest |d𝔊| along a computed path")


def _tangential(slopes: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The part of covectors that multipliers of the constraints cannot take up."""
    normal = np.swapaxes(np.linalg.qr(np.swapaxes(G, 1, 2))[0], 1, 2)
    return slopes - np.einsum("kci,kc->ki", normal, np.einsum("kci,ki->kc", normal, slopes))


def _orders(scheme: Scheme, state: State, step: float, seed: int) -> list[Finding]:
    # A scheme cannot have noise and no noise at once: with all normals zero, a bath is plain friction.
    system, claims = scheme.damped if isinstance(scheme, Langevin) else scheme.system, scheme.claims
    reference = Verlet(system) if system.constraints else RungeKutta4(system)
    # The same shapes for both measurements, so that each scheme is compiled once.
    common = {"time": 16 * step, "levels": (16, 32, 64), "seed": seed, "finest": 1024, "trajectories": 64}
    found = [_slope("order", claims.order, "slope without noise", convergence(scheme, reference, state, noise=0.0, **common), state)]
    if scheme.channels and claims.strong_order is not None:
        words = "slope on one Brownian path, 64 trajectories"
        found.append(_slope("strong order", claims.strong_order, words, convergence(scheme, reference, state, **common), state))
    return found


def _slope(law: str, claimed: float | int | None, words: str, measured: Convergence, state: State) -> Finding:
    """Errors at round-off have no slope: a scheme that is exact, or more accurate than can be seen, keeps any claim."""
    size = 1 + max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(state))
    roundoff = 1e4 * float(np.finfo(jax.tree.leaves(state.p)[0].dtype).eps) * size
    if measured.errors.min() < roundoff:
        return Finding(
            law,
            float(measured.errors.max()),
            roundoff,
            None if claimed is None else True,
            "error at the largest step; too close to round-off for a slope",
        )
    if claimed is None:
        return Finding(law, measured.order, -np.inf, None, f"{words}; not claimed")
    return Finding(law, measured.order, claimed - 0.25, measured.order > claimed - 0.25, f"{words}; claimed {claimed:g}")


def explain(scheme: Scheme) -> str:
    """In words and formulas: the action of a scheme, what is solved for and how, what it costs, and what it claims."""
    system, claims = scheme.system, scheme.claims
    lines = [f"{scheme.title} on {scheme.space}: {system.space.dim} degrees of freedom, {scheme.channels} Wiener processes"]
    if isinstance(scheme, Flow):
        lines += scheme.details()
    if isinstance(scheme, Action):
        structure = Variational(scheme).structure()
        lines += [f"  action       {formula}" for formula in _formulas(scheme)]
        lines.append(f"  unknown      the velocity v of the step, {system.space.dim} components; q1 = q0 ⊕ h v, p1 = D₂S_d + f⁺")
        if system.constraints:
            lines.append(f"  constraints  {system.constraints} multipliers Λ with g(q1) = 0, then p1 + G(q1)ᵀΛ′ with G v = 0")
        pull = " + G(q0)ᵀΛ" if system.constraints else ""
        lines.append(f"  solve        p0{pull} = −D₁S_d(q0, q0 ⊕ h v) − f⁻: {structure.words}")
        lines.append(f"  cost         {structure.cells.width} tangents of the residual and one block solve per iteration")
        if system.forced:
            when = "explicit, with the velocity at the start of the step" if scheme.explicit_force else "with the velocity of the step"
            lines.append(f"  force        as impulses of its virtual work along the step; {when}")
    kept = [word for word, flag in (("symplectic", claims.symplectic), ("keeps momentum maps", claims.momentum_maps)) if flag and not system.forced]
    orders = [f"order {claims.order:g}"] if claims.order is not None else []
    orders += [f"strong order {claims.strong_order:g}"] if claims.strong_order is not None and scheme.channels else []
    lines.append(f"  claims       {', '.join([*orders, *kept]) or 'nothing'} (measure them: bm.verify)")
    return Words("\n".join([*lines, *ensemble_words(scheme)]))


def _formulas(scheme: Action) -> list[str]:
    """The indented lines that open the file of an action: its scalar, said as an equation."""
    # A class made in a notebook or by exec may belong to no module that can be found.
    text = getattr(sys.modules.get(type(scheme).__module__), "__doc__", None) or ""
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]
