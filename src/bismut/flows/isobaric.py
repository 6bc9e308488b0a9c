"""Constant pressure: volume moves between the steps of another scheme, its Monte Carlo barostat.

    ln l' = ln l + σ z,      x' = x l'/l for all N centres,      p and orientations as they are
    accepted with probability min(1, exp(−[U(x', l') − U(x, l) + P (V' − V)]/kT + (N + 1) ln(V'/V)))

The proposal is symmetric in ln l, and dx = V^N d(x/l), dV = V d ln V, so moves keep

    exp(−(H(x, p; l) + P V)/kT) dx dp dV,          ⟨V⟩ = (N + 1) kT/P and Var V = (N + 1) (kT/P)² for the ideal gas

exactly. Composed with Metropolised steps so is the whole; with any other scheme averages have the bias of its step and no more. Axes may move in
groups of their own, each with the product A of its sides: then it is Π dA in place of dV. Where nothing holds the shape of the box, as in a fluid,
shapes of the same volume are equally likely in d ln(l_a/l_b), and wander until `limits` hold them.

Sides travel with the state, in its ledger (`BoxLedger`), and enter the potential as data (`changing_box`): a move compiles nothing, and lists of
neighbours survive it. As a function of the state and of the step's own normals it is the same wherever a run is cut. Moves between chunks, outside of
the compiled step, would need none of that, but would tie averages to how a run is cut, and no observer inside a chunk would know the box.

σ is adapted by stochastic approximation, ln σ ← ln σ + g_k (α − 0.4) with gains g_k = 2/k^0.6, in the first steps of a trajectory, and never after.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.arguments import float_array, is_number, is_traced
from bismut.errors import BismutError, BismutWarning, DomainError
from bismut.flows.brownian import Brownian
from bismut.flows.flow import Advances, BathFlow, flow, init_cache, step_with_cache
from bismut.flows.langevin import Langevin
from bismut.flows.variational import Solve
from bismut.mechanics import Claims, State
from bismut.mechanics.bodies.box import Box
from bismut.mechanics.bodies.changing_box import MARGIN, changing_box, scaled
from bismut.mechanics.function import BoxedParameters
from bismut.mechanics.heat import Temperature
from bismut.mechanics.start import Maxwell
from bismut.mechanics.state import BoxLedger, Ledger
from bismut.mechanics.system_fields import replaced
from bismut.spaces import Point, Space
from bismut.user_errors import warn

_WANTED = 0.4  # acceptance to which moves are adapted
_ADAPTED = 1000  # steps in which they are, by default
_GAIN, _FADING = 2.0, 0.6


class Isobaric(BathFlow):
    """A bath that keeps the pressure as well: volume moves between the steps of Langevin or Brownian motion.

    scheme    Langevin(...) or Brownian(...) of bodies in a closed periodic box; the box as declared is that of the start
    pressure  P, energy / length³ (or length² in the plane)
    every     steps from one move to the next
    size      σ, the standard deviation of ln(side) in a move; adapted to an acceptance of 0.4 if omitted
    adapt     steps of a trajectory in which σ is adapted, 1000 without a size and 0 with one; give a run at least that much burn_in
    axes      which sides move: all by one factor if omitted; (0, 1, 2) each by itself, ((0, 1), 2) two of them together, (2,) one alone
    limits    least and most of every side, over those of the box as declared, such as (0.8, 1.5): the law is that of boxes within them. If omitted,
              sides have no largest length, and a trajectory fails where one becomes less than 0.9 of what was declared (or than two cutoffs)

    A start has the box as declared. `bm.box_lengths`, `bm.volume`, `bm.density` and `bm.volume_acceptance` observe it, and `state.box` holds its
    sides. A change of U by a move is entered in the ledger as work.
    """

    scheme: Any
    pressure: Float[Array, ""]
    size: Float[Array, ""]
    every: int = eqx.field(static=True)
    adapt: int = eqx.field(static=True)
    axes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    limits: tuple[float, float] = eqx.field(static=True)
    bounded: bool = eqx.field(static=True)  # whether limits are part of the law
    box: Box = eqx.field(static=True)
    centres: int = eqx.field(static=True)

    def __init__(
        self,
        scheme: Any,
        pressure: Any,
        *,
        every: int = 10,
        size: float | None = None,
        adapt: int | None = None,
        axes: Any = None,
        limits: Any = None,
    ):
        if not isinstance(scheme, Langevin | Brownian):
            raise BismutError(f"Isobaric needs Langevin(...) or Brownian(...), which know a temperature, got {type(scheme).__name__}.")
        if scheme.temperature.zero:
            raise DomainError("temperature must be positive for moves of the volume.")
        _check_numbers(pressure, every, size, adapt)
        changing = changing_box(scheme.system, _limits(limits))
        self.scheme = replaced(scheme, system=changing.system)
        self.system, self.box, self.centres = changing.system, changing.box, changing.centres
        self.limits, self.bounded = (changing.least, changing.most), limits is not None
        self.every, self.adapt = int(every), (_ADAPTED if size is None else 0) if adapt is None else int(adapt)
        self.axes = _groups(axes, len(self.box.lengths))
        d, dtype = len(self.box.lengths), self.system.dtype
        self.pressure = jnp.asarray(pressure, dtype)
        self.size = jnp.asarray(0.5 / (d * np.sqrt(self.centres + 1)) if size is None else size, dtype)  # half the ideal gas's own fluctuation

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Claims(order=None, strong_order=None, weak_order=None)

    @property
    def title(self) -> str:
        return f"Isobaric({self.scheme.title})"

    @property
    def temperature(self) -> Temperature:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.scheme.temperature

    @property
    def space(self) -> Space:
        return self.scheme.space

    @property
    def channels(self) -> int:
        return self.scheme.channels + len(self.axes) + 2  # (z₁² + z₂²)/2 is exponentially distributed: minus the logarithm of a uniform number

    @property
    def path_channels(self) -> int:
        return self.scheme.path_channels

    @property
    def time_dependent(self) -> bool:
        return self.scheme.time_dependent

    @property
    def changes_box(self) -> bool:
        return True

    @property
    def keeps_ledger(self) -> bool:
        return True

    @property
    def pathwise(self) -> bool:
        return False

    def remarks(self, step: float) -> tuple[str, ...]:
        return self.scheme.remarks(step)

    @property
    def failure_advice(self) -> str:
        if self.bounded:
            return ""
        least = f"{MARGIN * self.limits[0]:.3g}"
        return (
            f"A state ceases to be finite here, too, where a side of the box becomes less than {least} of what was declared: so far lists of "
            "neighbours reach. Declare a box nearer to the density that the pressure makes, or give limits=(least, most)."
        )

    def check_step(self, step: float) -> None:
        self.scheme.check_step(step)

    def check_burn_in(self, steps: int, start: State | Maxwell) -> None:
        learned = 0.0 if isinstance(start, Maxwell) else float(np.min(np.asarray(_ledger(start).learned)))
        if steps < self.adapt - self.every * learned:
            warn(
                f"Volume moves are adapted during the first {self.adapt} steps, which are no draws of the ensemble, but burn_in is {steps}. Give "
                f"burn_in={self.adapt}, or the size of moves, size=.",
                BismutWarning,
            )

    def start(self, q: Point = (), **how: Any) -> State | Maxwell:
        """A start in the box as declared; arguments as for `Scheme.start`."""
        how.pop("ledger", None)  # it always has one
        start = self.scheme.start(q, ledger=True, **how)
        if isinstance(start, Maxwell):
            return replaced(start, blank=self.own_ledger())
        batch = jnp.shape(start.ledger.heat) if isinstance(start.ledger, Ledger) else ()
        return replace(start, ledger=self.own_ledger(batch))

    def own_ledger(self, batch: tuple[int, ...] = ()) -> BoxLedger:
        """A ledger without entries, in the box as declared."""
        dtype = self.system.dtype
        full = lambda value: jnp.broadcast_to(jnp.asarray(value, dtype), (*batch, *jnp.shape(value)))
        entries = {name: full(0.0) for name in ("heat", "work", "error", "accepted", "steps", "learned", "tried", "taken")}
        return BoxLedger(**entries, lengths=full(np.array(self.box.lengths)), size=full(self.size), wait=full(float(self.every)))

    def inside(self, lengths: Any) -> Advances:
        """The scheme in a box of these sides."""
        system = self.scheme.system.replace(parameters=BoxedParameters(self.system.parameters, lengths))
        return flow(replaced(self.scheme, system=system))

    def init_cache(self, state: State, t) -> Any:
        return init_cache(self.inside(_ledger(state).lengths), State(state.q, state.p), t)

    def step_with_cache(self, state: State, cache: Any, h, dW: Float[Array, " m"], t) -> tuple[State, Any, Solve]:
        dtype, m, box = self.system.dtype, self.scheme.channels, _ledger(state)
        h, t = jnp.asarray(h, dtype), jnp.asarray(t, dtype)
        moved, cache, solve = step_with_cache(self.inside(box.lengths), State(state.q, state.p, box.plain), cache, h, dW[:m], t)
        assert moved.ledger is not None
        entries = {name: getattr(moved.ledger, name) for name in ("heat", "work", "error", "accepted", "steps")}
        box = replace(box, **entries, wait=box.wait - 1)
        z = dW[m:] / jnp.sqrt(h)

        def move(carry):
            _, q, box, cache, sound = carry
            q, box, fits = self._move(q, box, z, t + h)
            # Computed from the state, as where a run begins: so a run can be cut here.
            cache = init_cache(self.inside(box.lengths), State(q, moved.p), t + h)
            return jnp.array(False), q, box, cache, sound & fits

        # A loop of one round or none: a branch that nobody takes costs nothing.
        begun = box.wait <= 0, moved.q, box, cache, jnp.array(True)
        _, q, box, cache, sound = jax.lax.while_loop(lambda carry: carry[0], move, begun)
        residual = jnp.where(sound, solve.residual, jnp.nan)  # no equation is to blame
        return State(q, moved.p, box), cache, solve._replace(residual=residual, converged=solve.converged & sound)

    def _move(self, q: Point, box: BoxLedger, z: Float[Array, " e"], t) -> tuple[Point, BoxLedger, Any]:
        """One volume move, and whether the box is still clear of limits that are not part of the law."""
        dtype, groups = self.system.dtype, len(self.axes)
        member = np.array([[float(axis in group) for group in self.axes] for axis in range(len(self.box.lengths))])
        ratio = jnp.exp(box.size * (jnp.asarray(member, dtype) @ z[:groups]))
        lengths, larger = box.lengths * ratio, jnp.prod(ratio)
        declared = jnp.asarray(self.box.lengths, dtype)
        within = jnp.all(lengths >= self.limits[0] * declared) & jnp.all(lengths <= self.limits[1] * declared)
        tried = scaled(q, ratio)
        energy = lambda q, lengths: self.system.replace(parameters=BoxedParameters(self.system.parameters, lengths)).potential(q, t)
        rise = energy(tried, lengths) - energy(q, box.lengths)
        work = rise + self.pressure * jnp.prod(box.lengths) * (larger - 1)
        exponent = -work / self.kT(t) + (self.centres + 1) * jnp.log(larger)
        dice = z[groups:]
        accepted = within & (exponent >= -0.5 * (dice @ dice))  # false for a rise that is NaN
        likely = jnp.where(within & ~jnp.isnan(exponent), jnp.exp(jnp.minimum(exponent, 0.0)), 0.0)
        learns = box.learned * self.every < self.adapt
        gain = _GAIN / (box.learned + 1) ** _FADING
        count = lambda mask: mask.astype(dtype)
        choose = lambda new, old: jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)
        box = replace(
            box,
            lengths=choose(lengths, box.lengths),
            work=box.work + jnp.where(accepted, rise, 0.0),
            size=jnp.where(learns, box.size * jnp.exp(gain * (likely - _WANTED)), box.size),
            wait=jnp.full_like(box.wait, self.every),
            learned=box.learned + count(learns),
            tried=box.tried + count(~learns),
            taken=box.taken + count(~learns & accepted),
        )
        return choose(tried, q), box, self.bounded | jnp.all(box.lengths >= MARGIN * self.limits[0] * declared)

    def details(self) -> list[str]:
        """What `explain` says of it."""
        together = len(self.axes) == 1 and len(self.axes[0]) == len(self.box.lengths)
        sides = "all sides by one factor" if together else f"sides {self.axes} by themselves"
        lower, upper = self.limits
        return [
            *self.scheme.details(),
            f"  pressure     {float(self.pressure):.6g}; a move every {self.every} steps, {sides}; N = {self.centres} centres",
            f"  box          {self.box} at the start; sides from {lower:.4g} to {upper:.4g} of these, lists of neighbours reach cutoff/{lower:.4g}",
        ]


def _ledger(state: State) -> BoxLedger:
    if not isinstance(state.ledger, BoxLedger):
        raise BismutError("A state at constant pressure holds its box. Make the start with the scheme's own start(...).")
    return state.ledger


def _check_numbers(pressure: Any, every: Any, size: Any, adapt: Any) -> None:
    if not (is_traced(pressure) or (is_number(pressure) and pressure >= 0)):
        raise DomainError(f"pressure must be one finite number ≥ 0, got {pressure!r}.")
    if not isinstance(every, int | np.integer) or every < 1:
        raise DomainError(f"every must be a whole number of steps ≥ 1, got {every!r}.")
    if size is not None and not (is_number(size) and size > 0):
        raise DomainError(f"size must be a positive standard deviation of ln(side), got {size!r}.")
    if adapt is not None and (not isinstance(adapt, int | np.integer) or adapt < 0):
        raise DomainError(f"adapt must be a whole number of steps ≥ 0, got {adapt!r}.")


def _limits(limits: Any) -> tuple[float, float] | None:
    if limits is None:
        return None
    pair = float_array(limits, "limits")
    if pair.shape != (2,) or not 0 < pair[0] < 1 < pair[1]:
        raise DomainError(f"limits must be least and most of the sides over those declared, such as (0.8, 1.5), got {limits!r}.")
    return float(pair[0]), float(pair[1])


def _groups(axes: Any, d: int) -> tuple[tuple[int, ...], ...]:
    """Axes that move together, group by group."""
    if axes is None:
        return (tuple(range(d)),)
    groups = tuple((int(one),) if np.ndim(one) == 0 else tuple(map(int, one)) for one in axes)
    flat = [axis for group in groups for axis in group]
    if not flat or len(set(flat)) != len(flat) or not set(flat) <= set(range(d)):
        raise DomainError(f"axes must name each of the axes 0 ... {d - 1} at most once, such as (0, 1, 2) or ((0, 1), 2), got {axes!r}.")
    return groups
