"""Overdamped motion: friction so strong that momenta have forgotten everything before the point has moved.

    dq = −M dU dt + M F dt + kT div M dt + √(2kT M) dW   (Itô),        moved by the retraction

M is the mobility, the inverse of the friction Γ. On a group covectors and velocities are those of the body frame, and div M = Σ_i X_i M_i is taken
along its left-invariant fields. exp(−U/kT) is invariant where F = 0.

With a constant M this is the limit of BAOAB for infinite friction: masses Γ, momenta drawn anew in the middle of every step, and steps of √(2h)

    q ← q ⊕ √(h/2) M (p + √(2h) (−dU + F)(q)),      p ← √(kT Γ) ξ,      q ← q ⊕ √(h/2) M p

On ℝⁿ the noise of a step is the mean of two successive normals (Leimkuhler & Matthews), and averages are right to order 2 in h for one evaluation
of the force. The mean of two normals has half their variance, so from a given point on, displacements are those of the time t − h/2: averages in
equilibrium and slopes of displacements know nothing of it. Velocities are constant along each move, so moves keep Haar measure times any function of
p, and none is solved for. On a group whose moves are geodesics (Γ is invariant under the adjoint action: on SO(3) equal mobilities of the three axes)
curvature is felt at order h, as if U were too weak by the part h kT M/12 on SO(3): the sum of third derivatives along a random geodesic is
d ΔU + ⅔ Ric dU. The force is corrected for it,

    F ← F + (h kT/6) Ric M F,        Ric(v, w) = −¼ tr(ad_v ad_w)

and averages are of order 2 there, too. With other mobilities on a group they are of order 1. So they are under constraints, where every move ends at
the nearest point of the surface, along M Gᵀλ: unlike the multiplier of RATTLE, which acts where a move begins, that one exists for long moves, too.

    metropolised   p ← √(kT Γ) ξ,  B½ A B½ over √(2h),  accepted with probability min(1, e^{−ΔH/kT}):   exp(−U/kT) exactly, whatever the step

There a move must keep volume and lead back: under constraints, and on a space that is no group, it is the variational flow of ½⟨p, M p⟩ (RATTLE).

A mobility (6, 6) of a body couples its translation and rotation: velocities are along the axes of the body then, and moves are those of SE(3), along
which a constant M has no divergence. They are no geodesics, so that averages are of order 1.

With a mobility M(q) the step is the Itô one, with the divergence by automatic differentiation, and averages are right to order 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.compile_cache import compiled
from bismut.errors import BismutError, DomainError, ShapeError
from bismut.flows import ledger
from bismut.flows.flow import BathFlow
from bismut.flows.metropolised import drift_action
from bismut.flows.variational import Solve, VariationalFlow
from bismut.mechanics import Claims, State, System, small_linalg
from bismut.mechanics.constraint import nearest_point, project
from bismut.mechanics.function import Adapter, UserFunction, user_function
from bismut.mechanics.heat import Temperature
from bismut.mechanics.mechanical import coefficients, with_masses
from bismut.mechanics.start import Maxwell, mass_root
from bismut.mechanics.subsystems import QuadraticKinetic
from bismut.precision import cast
from bismut.programs.evaluation import evaluate
from bismut.spaces import SO3, BodyMotion, Euclidean, Group, Point, Power, Product, Space, Velocity, add, pair, scale
from bismut.tracing import traced


class Brownian(BathFlow):
    """Overdamped motion of a system, whose masses and kinetic energy play no part.

    temperature   kT, a number ≥ 0 or a function of t
    mobility      M, the inverse of a friction: a number, numbers per coordinate, axis or body, matrices, as for the masses of `mechanical`; on rigid
                  bodies also (K, 6, 6) or (6, 6), translation and rotation coupled, both along the axes of the body; or a function of q that returns
                  the whole matrix (n, n), or its diagonal (n,)
    metropolised  whether steps are accepted or rejected, so that exp(−U/kT) is exact at any step; needs a constant mobility and no force
    retraction    "exp" (by default, where the space has one: averages of order 2 need it) or "cayley"

    `scheme.start(q)` needs no velocity. `state.p` is the momentum of the masses M⁻¹, drawn anew in every step; `potential_energy` is the energy of an
    overdamped system.
    """

    temperature: Temperature
    mobility: UserFunction | None = eqx.field(static=True)  # None where it is constant: its inverse is the mass of the system then
    metropolised: bool = eqx.field(static=True)
    order: int | None = eqx.field(static=True)  # of averages; None if they are exact
    ricci: Any  # the curvature of the metric Γ, a matrix for each array of a velocity; None where there is none, or where moves are no geodesics
    constrained = True

    def __init__(self, system: System, temperature: Any, mobility: Any = 1.0, *, metropolised: bool = False, retraction: str | None = None):
        if not isinstance(system, System):
            raise BismutError(f"Brownian needs a System, got {type(system).__name__}.")
        _check(system)
        if not callable(mobility) and (coupled := _coupled(system, mobility)) is not None:
            system, mobility = coupled
        space = _exponential(system.space) if retraction is None else system.space.using(retraction)
        self.temperature, self.metropolised = Temperature(temperature, system.dtype), bool(metropolised)
        self.mobility = user_function("mobility", mobility, ("q",)) if callable(mobility) else None
        gamma = 1.0 if self.mobility is not None else _inverse(space, mobility, system.dtype)
        self.system = with_masses(system.replace(space=space).without_noise(), gamma)
        self.ricci, self.order = None, 1
        if self.mobility is not None:
            _check_mobility(self)
        elif not system.constraints and space == _exponential(space):
            self.ricci, self.order = _ricci(self.system)
        if self.metropolised:
            self._check_metropolised()
            self.order = None

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Claims(order=None, strong_order=None, weak_order=None)  # of states with momenta that are drawn anew; averages are measured

    @property
    def title(self) -> str:
        return f"Brownian({'metropolised' if self.metropolised else ''})".replace("()", "")

    @property
    def channels(self) -> int:
        return self.system.space.dim + (2 if self.metropolised else 0)

    @property
    def path_channels(self) -> int:
        return 0  # normals that are drawn anew belong to no path

    @property
    def time_dependent(self) -> bool:
        return self.temperature.time_dependent or (self.mobility is not None and "t" in self.mobility.wants) or super().time_dependent

    @property
    def keeps_ledger(self) -> bool:
        return True

    @property
    def pathwise(self) -> bool:
        return not self.metropolised

    def start(self, q: Point = (), *, velocity=None, momentum=None, temperature=None, t=None, project=False, ledger=False) -> State | Maxwell:
        """A start at a point; its momentum is drawn at the temperature of the bath unless one is given."""
        if velocity is None and momentum is None and temperature is None:
            kT = self.kT(0.0 if t is None else t)
            if not traced(kT) and float(kT) == 0.0:
                momentum = self.system.space.zero(self.system.dtype)
            else:
                temperature = kT
        return super().start(q, velocity=velocity, momentum=momentum, temperature=temperature, t=t, project=project, ledger=ledger)

    def init_cache(self, state: State, t) -> tuple[Velocity, ...]:
        """The force at the beginning of a Metropolised step, which is that at the end of the step before. Where the potential depends on time it
        is not: a step is made with the clock at rest at t, both kicks and the acceptance, and then the clock moves on."""
        return (self.slope(state.q, jnp.asarray(t, self.system.dtype)),) if self.metropolised and not self.system.time_dependent else ()

    def step_with_cache(self, state: State, cache: tuple[Velocity, ...], h, dW, t) -> tuple[State, tuple[Velocity, ...], Solve]:
        dtype, n = self.system.dtype, self.system.space.dim
        h, t = jnp.asarray(h, dtype), jnp.asarray(t, dtype)
        z, extra, accepted = self.system.space.unflatten(dW[:n] / jnp.sqrt(h)), dW[n:] / jnp.sqrt(h), jnp.ones_like(h)
        if self.metropolised:
            slope = cache[0] if cache else self.slope(state.q, t)
            new, slope, solve, accepted = self._accepted_or_rejected(state, slope, h, z, extra, t)
            cache = (cast(slope, dtype),) if cache else ()
        elif self.mobility is not None:
            new, solve = self._ito(state, h, z, t), Solve.explicit(self.system.dtype)
        else:
            new, solve = self._step(state, h, z, t)
        if state.ledger is not None:
            work = self._work(state.q, new.q, h, t)
            gain = self.system.energy(new, t + h) - self.system.energy(state, t)
            new = State(new.q, new.p, ledger.add_entry(state.ledger, gain - work, work, jnp.zeros_like(h), accepted))
        return cast(new, dtype), cache, solve

    def _work(self, q0: Point, q1: Point, h, t) -> Float[Array, ""]:
        """Of a potential that changes in time, and of forces along the displacement, as a Stratonovich integral."""
        system, space = self.system, self.system.space
        work = system.potential(q1, t + h) - system.potential(q1, t)
        if not system.pushed:
            return work
        rest = space.zero(system.dtype)
        return work + 0.5 * pair(add(system.force(q0, rest, t), system.force(q1, rest, t + h)), space.subtract(q1, q0))

    def _step(self, state: State, h, z: Velocity, t) -> tuple[State, Solve]:
        s = jnp.sqrt(2 * h)
        force = self.slope(state.q, t)
        if self.ricci is not None:
            curved = jax.tree.map(lambda ricci, v: v @ ricci, self.ricci, self.system.velocity(state.q, force, t))
            force = add(force, scale(h * self.kT(t) / 6, curved))
        p, kicked = self._along(state.q, add(state.p, scale(s, force)), t)
        state, first = self.drift(State(state.q, p), 0.5 * s, t)
        p, drawn = self._along(state.q, self._fresh(state.q, z, t), t)
        state, second = self.drift(State(state.q, p), 0.5 * s, t)
        return state, Solve.worst([kicked, first, drawn, second])

    def _accepted_or_rejected(self, state: State, slope: Velocity, h, z: Velocity, extra, t):
        s = jnp.sqrt(2 * h)
        p, drawn = self._along(state.q, self._fresh(state.q, z, t), t)
        p = jax.tree.map(lambda leaf: jnp.where(drawn.converged, leaf, 0.0), p)
        old = State(state.q, p)
        half, kicked = self._along(old.q, add(p, scale(0.5 * s, slope)), t)
        moved, solve = self.drift(State(old.q, half), s, t)
        new_slope = self.slope(moved.q, t)
        p, landed = self._along(moved.q, add(moved.p, scale(0.5 * s, new_slope)), t)
        new = State(moved.q, p)
        solve = Solve.worst([kicked, solve, landed])
        rise = self.system.energy(new, t) - self.system.energy(old, t)
        good = solve.converged & (rise <= self.kT(t) * 0.5 * (extra @ extra))  # (z₁² + z₂²)/2 is exponentially distributed; false where NaN
        if not self._explicit_moves:
            # An implicit move may have several solutions: only one that leads back to where it came from may be accepted.
            back, returned = self.drift(State(moved.q, scale(-1.0, moved.p)), s, t)
            near = jnp.sqrt(jnp.finfo(h.dtype).eps) * (1 + jnp.max(jnp.abs(self.system.space.flatten(half))))
            good = good & returned.converged & (jnp.max(jnp.abs(self.system.space.gap(back.q, old.q))) < near)
        chosen = jax.tree.map(lambda a, b: jnp.where(good, a, b), (new, new_slope), (old, slope))
        solved = Solve(jnp.where(solve.converged, solve.residual, 0.0), jnp.array(True), solve.iterations)
        return *chosen, solved, good.astype(h.dtype)

    def _ito(self, state: State, h, z: Velocity, t) -> State:
        space, q = self.system.space, state.q
        M = self._matrix(q, t)
        noise = jnp.sqrt(2 * self.kT(t) * h) * (small_linalg.cholesky(M) @ space.flatten(z))
        drift = M @ space.flatten(self.slope(q, t)) + self.kT(t) * self.divergence(q, t)
        return State(space.move(q, space.unflatten(h * drift + noise)), scale(jnp.sqrt(self.kT(t)), z))

    def divergence(self, q: Point, t) -> Float[Array, " n"]:
        """Σ_i X_i M_ij, along the frame of velocities."""
        space = self.system.space
        jacobian = jax.jacfwd(lambda e: self._matrix(space.nudge(q, space.unflatten(e)), t))(jnp.zeros(space.dim, self.system.dtype))
        return jnp.einsum("iji->j", jacobian)

    def _matrix(self, q: Point, t) -> Float[Array, "n n"]:
        assert self.mobility is not None
        M = jnp.asarray(self.mobility(q, t=t, parameters=self.system.parameters), self.system.dtype)
        return jnp.diag(M) if M.ndim == 1 else M

    @compiled
    def slope(self, q: Point, t) -> Velocity:
        """−dU + F."""
        system, space = self.system, self.system.space
        slope = space.differential(lambda q: -system.potential(q, t), q)
        return add(slope, system.force(q, space.zero(system.dtype), t)) if system.pushed else slope

    @property
    def _explicit_moves(self) -> bool:
        return isinstance(self.system.space, Group) and not self.system.constraints

    @compiled
    def drift(self, state: State, s, t) -> tuple[State, Solve]:
        """Motion with the velocity M p for a time s."""
        if self._explicit_moves or not self.metropolised:
            q, solve = self.system.space.move(state.q, self.system.velocity(state.q, state.p, t), s), Solve.explicit(self.system.dtype)
            if self.system.constraints:
                q, root = nearest_point(self.system, q, t)
                solve = solve._replace(converged=root.converged)
            return State(q, state.p), solve
        return VariationalFlow(drift_action(self.system)).advance(state, s, jnp.zeros(0, self.system.dtype), t)

    def _fresh(self, q: Point, z: Velocity, t) -> Velocity:
        return scale(jnp.sqrt(self.kT(t)), mass_root(self.system, q, z, t))

    def _along(self, q: Point, p: Velocity, t) -> tuple[Velocity, Solve]:
        """The momentum without its part against the constraints."""
        solve = Solve.explicit(self.system.dtype)
        if not self.system.constraints:
            return p, solve
        p, root = project(self.system, q, p, t)
        return p, solve._replace(converged=root.converged)

    def details(self) -> list[str]:
        """What `explain` says of it."""
        kT = "a function of time" if self.temperature.value is None else f"{float(self.temperature.value):.6g}"
        if self.mobility is not None:
            step = "Itô step with kT div M by automatic differentiation"
        elif self.metropolised:
            step = "a fresh momentum, B½ A B½ over √(2h), accepted or rejected: exp(−U/kT) exactly"
        else:
            step = "BAOAB at infinite friction over √(2h), one force per step"
        if self.metropolised and not self._explicit_moves:
            moves = "variational, solved for the velocity"
        elif self.system.constraints:
            moves = "explicit, with a constant velocity, then to the nearest point of the surface along M Gᵀλ"
        else:
            moves = "explicit, with a constant velocity"
        step += f"; averages of order {self.order}{self._why()}" if self.order else ""
        return [f"  bath         kT = {kT}; mobility {'M(q)' if self.mobility else 'constant'}", f"  step         {step}", f"  moves        {moves}"]

    def _why(self) -> str:
        """Why averages are not of order 2."""
        if self.order == 2 or self.mobility is not None:
            return ""
        if self.system.constraints:
            return ", as moves end on a surface"
        cayley = self.system.space != _exponential(self.system.space)
        return ", as moves by Cayley are too short" if cayley else ", as moves with this mobility are no geodesics"

    def _check_metropolised(self) -> None:
        if self.mobility is not None:
            raise BismutError("metropolised=True needs a constant mobility: with M(q) a proposal depends on q. Give numbers.")
        if self.temperature.zero:
            raise DomainError("temperature must be positive for Metropolised steps.")
        if self.system.forced:
            raise BismutError("Metropolised steps sample exp(−U/kT); they do not allow a force that is not −dU.")


def _check(system: System) -> None:
    """Refuse what has no overdamped limit."""
    if system.in_phase_space or not system.has_lagrangian or system.reduced:
        raise BismutError("Brownian needs a Lagrangian, whose potential −L(q, 0) moves the system; a Hamiltonian or a reduced system has none.")
    if system.dissipation is not None:
        raise BismutError("This system already has its own dissipation (thermalize). Give Brownian the original system.")
    if system.channels:
        raise BismutError(
            "This system has noise of its own, but that of overdamped motion follows from mobility and temperature. Give system.without_noise()."
        )
    if system.force_sees_velocity:
        raise BismutError("The force depends on the velocity, which overdamped motion does not have. Give F(q), or use Langevin.")
    if system.moving_constraint:
        raise BismutError("Overdamped motion is projected onto a surface at rest, but the constraint moves. Use Verlet with a force.")


def _exponential(space: Space) -> Space:
    """The space with the exponential map, where it has a choice: moves by Cayley are too short by a part θ²/12, which is of order h."""
    try:
        return space.using("exp")
    except DomainError:
        return space


@dataclass(frozen=True, eq=False)
class _AlongBodies(Adapter):
    """A force on bodies (x, R) along the axes of the bodies, one array (..., 6)."""

    force: UserFunction
    space: Space
    dtype: Any

    def __call__(self, q, v, t=None, parameters=None):
        del v
        linear, turning = self.force(q, self.space.zero(self.dtype), t=t, parameters=parameters)
        return jnp.concatenate([jnp.einsum("...ji,...j->...i", q[1], linear), turning], -1)


def _coupled(system: System, mobility: Any) -> tuple[System, Any] | None:
    """The system with velocities along the axes of its bodies, and M for each of them, if M couples translation and rotation."""
    space, shape = system.space, np.shape(mobility) if hasattr(mobility, "shape") or not isinstance(mobility, tuple) else ()
    base, count = (space.base, space.count) if isinstance(space, Power) else (space, None)
    factors = base.factors if isinstance(base, Product) else ()
    bodies = len(factors) == 2 and isinstance(factors[0], Euclidean) and factors[0].dim == 3 and isinstance(factors[1], SO3)
    if not bodies or shape not in ((6, 6), (count, 6, 6)):
        return None
    if system.constraints:
        raise BismutError(
            "Mobilities that couple translation and rotation are not available under constraints. Give one of each, mobility=(M_x, M_R)."
        )
    moving = BodyMotion() if count is None else BodyMotion() ** count
    force = None if system._force is None else user_function("force", _AlongBodies(system._force, space, system.dtype), ("q", "v"))
    each_of_them = mobility if count is None else jnp.broadcast_to(jnp.asarray(mobility), (count, 6, 6))
    return system.replace(space=moving, _force=force, _symmetries=()), each_of_them


def _inverse(space: Space, mobility: Any, dtype) -> Any:
    """Γ = M⁻¹ for each array of the velocity."""
    parts = coefficients(space, mobility, "mobility", dtype, positive=True)
    inverses = [jnp.linalg.inv(one.value) if one.matrix else 1 / one.value for one in parts]
    return tuple(inverses) if len(inverses) > 1 else inverses[0]


def _ricci(system: System) -> tuple[Any, int]:
    """Ric of the metric Γ as a matrix for each array of a velocity, None if it vanishes, and the order of averages: 1 if Γ is not invariant."""
    assert system._kinetic is not None
    kinetic = system._kinetic.function
    assert isinstance(kinetic, QuadraticKinetic)
    try:
        matrices = _ricci_of(kinetic.space, kinetic.masses, 0)
    except _NoGeodesics:
        return None, 1
    return (matrices if any(np.any(matrix) for matrix in jax.tree.leaves(matrices)) else None), 2


class _NoGeodesics(Exception):
    """Curves with a constant velocity are no geodesics."""


def _ricci_of(space: Space, masses: Any, bodies: int) -> Any:
    """`bodies` is the number of leading axes of the masses."""
    if isinstance(space, Product):
        return tuple(_ricci_of(factor, part, bodies) for factor, part in zip(space.factors, masses, strict=True))
    if isinstance(space, Power):
        return _ricci_of(space.base, masses, bodies + 1)
    n = space.dim
    if isinstance(space, Euclidean):
        return np.zeros((n, n))
    if not isinstance(space, Group) or traced(masses) or jax.eval_shape(space.zero) != jax.ShapeDtypeStruct((n,), float):
        raise _NoGeodesics
    c = np.asarray(evaluate(lambda: jax.vmap(lambda x: jax.vmap(lambda y: space.bracket(x, y))(jnp.eye(n)))(jnp.eye(n))))
    masses = np.asarray(masses)
    gamma = masses.reshape(-1, n, n) if masses.ndim == bodies + 2 else masses.reshape(-1, n, 1) * np.eye(n)
    lowered = np.einsum("ijk,bkl->bijl", c, gamma)  # ⟨Γ [x, y], z⟩, which an invariant Γ makes antisymmetric in y and z
    if np.abs(lowered + np.swapaxes(lowered, 2, 3)).max() > 1e-12 * np.abs(gamma).max():
        raise _NoGeodesics
    return -0.25 * np.einsum("ikl,jlk->ij", c, c)


def _check_mobility(scheme: Brownian) -> None:
    system, n = scheme.system, scheme.system.space.dim
    if system.constraints:
        raise BismutError("A mobility M(q) under constraints is not available: give a constant one, which is projected onto the surface.")
    try:
        shape = jax.eval_shape(lambda q: jnp.asarray(_raw(scheme, q)), system.space.origin(system.dtype)).shape
    except (TypeError, ValueError, IndexError) as problem:
        raise ShapeError(f"mobility(q) fails on {system.space}: {problem}.") from problem
    if shape not in ((n, n), (n,)):
        raise ShapeError(f"mobility(q) must return the matrix ({n}, {n}) or its diagonal ({n},) on {system.space}, got shape {shape}.")


def _raw(scheme: Brownian, q: Point) -> Any:
    function: Callable | None = scheme.mobility
    assert function is not None
    return function(q, t=jnp.zeros((), scheme.system.dtype), parameters=scheme.system.parameters)
