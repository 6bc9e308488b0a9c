"""Steps that are accepted or refused.

    O½ [V, accepted with probability min(1, e^{−ΔH/kT}), or (q, −p)] O½        exp(−H/kT) exactly, whatever the step

V is the variational step with the clock fixed. It keeps phase volume, and turned around it leads back: (q1, −p1) goes to (q0, −p0). The second is
not given where the step is implicit: at a large step its equation can have several solutions, and the one found from (q1, −p1) need not be the
way back. So every implicit step is also taken back, and refused if it does not return.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bismut.actions.action import Action
from bismut.actions.verlet import Verlet
from bismut.compile_cache import compiled
from bismut.errors import BismutError, DomainError
from bismut.flows.splitting import Splitting, StepOutcome
from bismut.flows.variational import Solve, VariationalFlow
from bismut.mechanics import Claims, State, System
from bismut.mechanics.subsystems import free_motion
from bismut.programs.evaluation import evaluate
from bismut.registry import SPLITTINGS
from bismut.spaces import Space, scale
from bismut.tracing import traced

if TYPE_CHECKING:
    from bismut.flows.substeps import Substeps


@SPLITTINGS.register
@dataclass(frozen=True)
class Metropolised(Splitting):
    """A variational step that is its own reverse, accepted or rejected, between two halves of the bath: exp(−H/kT) exactly, whatever the step.

    action  what makes the scheme from the system: bm.Verlet, bm.Midpoint, ...

    Rejected steps keep q and reverse p. A step whose equation is not solved is rejected, and so is an implicit one that does not lead back:
    (q1, −p1) must go to (q0, −p0), which its equation does not ensure if it has several solutions.
    """

    action: Callable[[System], Action] = Verlet

    def baths(self, shaken):
        return 2

    @property
    def extra(self) -> int:
        return 2  # (z₁² + z₂²)/2 is exponentially distributed: minus the logarithm of a uniform number

    @property
    def pathwise(self) -> bool:
        return False

    def claims(self, system):
        return Claims(order=None, strong_order=None, weak_order=None)

    def check(self, substeps):
        check_reversible(substeps, self.action)

    def step(self, substeps, state, force, h, dW, z, extra, t):
        state, first = substeps.bath(state, 0.5 * h, z[0], t)
        tried, solve, good = attempt(substeps, self.action, state, h, dW, t)
        rise = substeps.energy(tried, t) - substeps.energy(state, t)
        raised = jnp.where(good & ~jnp.isnan(rise), rise, jnp.inf)
        good = good & (rise <= substeps.kT(t) * 0.5 * (extra @ extra))  # false for a rise that is NaN
        refused = State(state.q, scale(-1.0, state.p), state.ledger)
        state = jax.tree.map(lambda new, old: jnp.where(good, new, old), tried, refused)
        work = substeps.work_of_time(state, h, t)
        state, second = substeps.bath(state, 0.5 * h, z[1], t + h)
        solved = Solve(jnp.where(solve.converged, solve.residual, 0.0), jnp.array(True), solve.iterations)
        return StepOutcome(state, solved, first + second, work, good.astype(h.dtype), rise=raised)

    def __repr__(self):
        return f"Metropolised({getattr(self.action, '__name__', 'own action')})"


@compiled
def attempt(substeps: Substeps, action: Callable[[System], Action], state: State, h, dW, t) -> tuple[State, Solve, Bool[Array, ""]]:
    """The step V, how it was solved, and whether it may be accepted: solved and, where it is implicit, found to lead back."""
    tried, solve = substeps.variational(action, state, h, dW, t, fixed_time=True)
    if VariationalFlow(substeps.scheme_of(action)).structure().linear:
        return tried, solve, solve.converged
    back, returned = substeps.variational(action, State(tried.q, scale(-1.0, tried.p), state.ledger), h, dW, t, fixed_time=True)
    return tried, solve, solve.converged & returned.converged & leads_back(substeps.space, back, state)


def leads_back(space: Space, back: State, state: State) -> Bool[Array, ""]:
    """Whether (q, −p) of one state is another: the way back of the same solution misses by round-off; another solution is far away."""
    p = space.flatten(state.p)
    return _gap(space, back, state) < jnp.sqrt(jnp.finfo(p.dtype).eps) * (1 + jnp.max(jnp.abs(p)))


def drift_action(system: System, retraction: str | None = None) -> Action:
    """The action of drifts: the trapezoid one, because kick, drift and kick together are its step."""
    return Verlet(free_motion(system), retraction=retraction)


_TIMES = (0.0, 0.7)  # at which a step is tried


def check_reversible(substeps: Substeps, action: Callable[[System], Action]) -> None:
    """Acceptance gives the Gibbs measure only for a step that, turned around, leads back, and with noise that friction balances."""
    system = substeps.moving
    if system.channels:
        raise BismutError("A Metropolised step cannot have noise that no friction balances. Omit friction= to balance the system's γ_i.")
    if substeps.temperature.zero:
        raise DomainError("temperature must be positive for a Metropolised step.")
    scheme = substeps.scheme_of(action)
    if system.forced or scheme.forced:
        raise BismutError("A Metropolised step samples exp(−H/kT); it does not allow a force that is not −dU.")
    space, dtype = system.space, system.dtype
    point = lambda: space.move(space.origin(dtype), space.unflatten(jnp.linspace(0.1, 0.3, space.dim, dtype=dtype)))
    at_rest = _number(lambda: jnp.max(jnp.abs(space.flatten(system.momentum(point(), space.zero(dtype), _TIMES[1])))))
    if at_rest is not None and at_rest > 0:
        raise BismutError("A Metropolised step needs L(q, −v) = L(q, v), but this Lagrangian has a term linear in the velocity.")
    if isinstance(scheme, Verlet) or system.constraints:
        return
    state = lambda: State(point(), space.unflatten(jnp.linspace(0.5, 1.0, space.dim, dtype=dtype)))
    for t in _TIMES:  # as it is stepped: with the clock fixed, at any time
        gap = _number(lambda t=t: reversed_gap(scheme.on(scheme.system.at(t)), state(), 0.1, jnp.zeros(0, dtype), t))
        if gap is not None and not gap < 1e-9:
            raise BismutError(
                f"A Metropolised step must be its own reverse at a fixed time, but {scheme.title} reversed misses its start by {gap:.2g} "
                f"(step 0.1, t = {t:g}). Use bm.Verlet, or a midpoint action with the exponential retraction."
            )


def _number(compute: Callable[[], Any]) -> float | None:
    """The outcome of a computation; None where it hangs on numbers that are only traced, as when a scheme is made inside jit."""
    value = evaluate(compute)
    return None if traced(value) else float(value)


def reversed_gap(action: Action, state: State, h, dW, t) -> Float[Array, ""]:
    """How far a step, turned around and repeated, misses its beginning."""
    step = VariationalFlow(action)
    there, _ = step.advance(state, h, dW, t)
    back, _ = step.advance(State(there.q, scale(-1.0, there.p)), h, dW, t)
    return _gap(action.space, back, state)


def _gap(space: Space, back: State, state: State) -> Float[Array, ""]:
    """How far (q, −p) of one state is from another."""
    moved, turned = space.flatten(space.subtract(back.q, state.q)), space.flatten(back.p) + space.flatten(state.p)
    return jnp.max(jnp.abs(moved)) + jnp.max(jnp.abs(turned))
