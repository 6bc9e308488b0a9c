"""What every way of stepping has in common: a system, claims about itself, and start states.

Claims are data. `verify` measures them, and the documentation quotes the measurement.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

import equinox as eqx

from bismut.errors import BismutError
from bismut.formatting import table
from bismut.mechanics.hamiltonian import noises_commute
from bismut.mechanics.start import Maxwell, make_start
from bismut.mechanics.state import Ledger, State
from bismut.mechanics.system import System
from bismut.spaces import Point, Space, Velocity


class Claims(NamedTuple):
    """What a scheme claims about itself; None where it claims nothing. `verify` measures it.

    order          of the error without noise
    strong_order   of the error on one Brownian path
    weak_order     of the error of averages over the noise
    symplectic     every step preserves the symplectic form, whatever the noise
    momentum_maps  those of symmetries of L and of every γ_i are conserved, whatever the noise
    self_adjoint   a step backwards, with −h and −ΔW, undoes a step
    casimirs       functions of the momentum that are constant on coadjoint orbits are conserved, whatever H and the noise
    """

    order: float | None
    strong_order: float | None = 1.0
    weak_order: float | None = 1.0
    symplectic: bool = False
    momentum_maps: bool = False
    self_adjoint: bool = False
    casimirs: bool = False

    def __str__(self) -> str:
        named = (("order", self.order), ("strong order", self.strong_order), ("weak order", self.weak_order))
        orders = [f"{name} {value:g}" for name, value in named if value is not None]
        kinds = {"symplectic": self.symplectic, "keeps momentum maps": self.momentum_maps, "its own adjoint": self.self_adjoint}
        properties = [name for name, flag in (kinds | {"keeps Casimirs": self.casimirs}).items() if flag]
        return ", ".join([*orders, *properties]) or "nothing"


class Scheme(eqx.Module):
    """A system and a rule to advance it. Concrete schemes are actions or flows."""

    system: System
    claims: ClassVar[Claims]
    phase_space: ClassVar[bool] = False  # whether it can step noise that sees the momentum, and a Hamiltonian in place of L

    def __check_init__(self):
        if isinstance(self.system, System) and self.system.in_phase_space and not self.phase_space:
            what = "noise that sees the momentum" if self.system.noise_hamiltonians else "a Hamiltonian in place of a Lagrangian"
            raise BismutError(
                f"{type(self).__name__} cannot step {what}. Use HamiltonianMidpoint, HamiltonianEuler or HamiltonianVerlet, where p is a variable."
            )

    @property
    def space(self) -> Space:
        """The space, with the retraction this scheme uses."""
        return self.system.space

    @property
    def channels(self) -> int:
        """How many normals a step needs."""
        return self.system.channels

    @property
    def forced(self) -> bool:
        """Whether anything acts that has no potential, so that steps are not symplectic."""
        return self.system.forced

    @property
    def time_dependent(self) -> bool:
        """Whether anything that moves a state can change with t."""
        return self.system.time_dependent

    @property
    def effective_claims(self) -> Claims:
        """The claims, as far as this system lets them hold: without Lévy areas, noises that do not commute allow strong order ½ and no more."""
        strong = self.claims.strong_order
        return self.claims if strong is None or strong <= 0.5 or noises_commute(self.system) else self.claims._replace(strong_order=0.5)

    @property
    def casimirs(self) -> dict[str, Callable[[State], Any]]:
        """The Casimirs that are known, by name: functions of a state. Whether a step keeps them is in the claims; `verify` measures it."""
        return {}

    @property
    def path_channels(self) -> int:
        """How many of them, counted from the first, a bounded path bounds: those that an implicit step sees."""
        return self.channels

    @property
    def supports_jumps(self) -> bool:
        """Whether a finite increment moves a state along the flow of its noise for unit time: so it is where kicks see q alone."""
        return not self.system.kick_sees_velocity

    @property
    def max_native_ops(self) -> int | None:
        """Operations of a step beyond which writing it out does not pay: products of large matrices, after reduction by symmetry. On su(16) it takes
        minutes to compile."""
        return 40_000 if self.system.reduced else None

    @property
    def keeps_ledger(self) -> bool:
        """Whether its steps enter heat, work and error in the ledger of a start made with ledger=True."""
        return False

    @property
    def changes_box(self) -> bool:
        """Whether the sides of the periodic box are part of the state."""
        return False

    def remarks(self, step: float) -> tuple[str, ...]:
        """What a reader of results at this step should know, one sentence each, for the header of a run."""
        del step
        return ()

    @property
    def failure_advice(self) -> str:
        """What to do about trajectories that failed, where the scheme knows better than that a smaller step usually helps."""
        return ""

    def check_step(self, step: float) -> None:
        """Warn where a step is known to distort the motion."""

    def check_burn_in(self, steps: int, start: State | Maxwell) -> None:
        """Warn where a run looks before the scheme is what it will be."""

    @property
    def pathwise(self) -> bool:
        """Whether the derivative of an average is the average of derivatives along paths: not where steps are refused."""
        return True

    @property
    def title(self) -> str:
        """The name of the scheme with its options."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self) if field.kw_only and getattr(self, field.name) != field.default}
        settings = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
        return f"{type(self).__name__}({settings})" if settings else type(self).__name__

    def __repr__(self) -> str:
        return f"{self.title} of {self.system!r}"

    def _repr_html_(self) -> str:
        rows = [("claims", str(self.effective_claims)), ("Wiener processes", str(self.channels))]
        named = {name for name, _ in rows}
        return table(f"{self.title} on {self.space}", [*rows, *(row for row in self.system.describe() if row[0] not in named)])

    def start(
        self,
        q: Point = (),
        *,
        velocity: Velocity | None = None,
        momentum: Velocity | None = None,
        temperature: Any = None,
        t: Any = None,
        project: bool = False,
        ledger: bool = False,
    ) -> State | Maxwell:
        """A start state from a velocity or a momentum, or Maxwell momenta at kT = temperature, drawn afresh for each trajectory.

        On the dual of an algebra without advected quantities, no q is given. Leading axes of q and velocity or momentum are a batch: one start
        per trajectory. `t` is the time of the start, where anything depends on it; by default that at which the run begins. Under constraints a
        start off the surface is rejected; `project` moves it there, point and momentum. With `ledger` the trajectory keeps account of heat, work
        and accepted steps, which `bm.heat`, `bm.work` and `bm.acceptance` read.
        """
        if ledger:
            self.check_ledger()
        motion = {"velocity": velocity, "momentum": momentum, "temperature": temperature}
        return make_start(self.space, self.system, q, motion, t=t, project=project, ledger=ledger)

    def own_ledger(self) -> Ledger | None:
        """The ledger that every state of the scheme has, whether or not heat and work are wanted; None if it has none."""
        return None

    def check_ledger(self) -> None:
        """Refuse a ledger in which nothing would be entered."""
        if self.keeps_ledger:
            return
        why = "its steps make no entries" if self.system.moves else "no energy is known without a Lagrangian: give Discrete(..., system=system) one"
        raise BismutError(f"{self.title} keeps no ledger of heat and work, because {why}. Make the start without ledger=True.")


def required_time(scheme: Scheme, t: Any) -> Any:
    """The time that was given; it may be omitted where nothing depends on it."""
    if t is None and scheme.time_dependent:
        raise BismutError(f"{scheme.title} depends on t, but no time was given. Give the time of the step, or t0 of a path.")
    return 0.0 if t is None else t
