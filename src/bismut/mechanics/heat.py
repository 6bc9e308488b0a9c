"""Temperature, and the force that balances the system's own noise.

    F(q, v) = −Γ(q) v,      Γ(q) = (1/2kT) Σ_i dγ_i(q) ⊗ dγ_i(q)        makes exp(−H/kT) invariant

Γ may be degenerate and may depend on q. Inside a variational step the force is discretised: `VariationalEuler` takes it explicitly, as in the paper,
and heats by O(h). `Langevin` relaxes the momentum exactly instead.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from bismut.errors import BismutError, DomainError, ShapeError
from bismut.mechanics.fluctuation_dissipation import BracketDissipation
from bismut.mechanics.friction import Friction, own_noise_friction
from bismut.mechanics.function import UserFunction, required_function
from bismut.mechanics.system import System
from bismut.spaces import Point, Velocity


class Temperature(eqx.Module):
    """kT, a number or a function of time (and of parameters, if it names them)."""

    value: Float[Array, ""] | None
    function: UserFunction | None = eqx.field(static=True)
    dtype: np.dtype = eqx.field(static=True)

    def __init__(self, value: Any, dtype):
        self.dtype = np.dtype(dtype)
        if callable(value):
            self.value, self.function = None, required_function("temperature", value, ())
            return
        if not isinstance(value, Tracer):
            if value is None or isinstance(value, str):
                raise DomainError(f"temperature must be one number kT or a function of t, got {value!r}. Convert it: bm.units.molecular.kT('300 K').")
            if np.shape(value) != ():
                raise ShapeError(f"temperature must be one number kT or a function of t, got shape {np.shape(value)}.")
            if not np.isfinite(value) or value < 0:
                raise DomainError(f"temperature must be a finite kT ≥ 0, got {value}.")
        self.value, self.function = jnp.asarray(value, dtype), None

    def __call__(self, t, parameters) -> Float[Array, ""]:
        if self.function is None:
            assert self.value is not None
            return self.value
        return jnp.asarray(self.function(t=t, parameters=parameters), self.dtype)

    @property
    def time_dependent(self) -> bool:
        return self.function is not None and "t" in self.function.wants

    @property
    def zero(self) -> bool:
        """Whether it is known to be 0."""
        return self.value is not None and not isinstance(self.value, Tracer) and float(self.value) == 0.0


class Drag(eqx.Module):
    """F = −Γ v."""

    friction: Friction
    temperature: Temperature

    def __call__(self, system: System, q: Point, v: Velocity, t) -> Velocity:
        kT = self.temperature(t, system.parameters)
        return system.space.unflatten(-self.friction.drag(system, q, system.space.flatten(v), t, kT))


def check_quadratic(system: System, what: str) -> None:
    """Refuse a Hamiltonian whose momenta are not Gaussian in equilibrium."""
    if not system.quadratic:
        raise BismutError(f"{what} needs a Hamiltonian that is quadratic in the momentum: a Lagrangian with a kinetic energy ½⟨v, M(q) v⟩.")


def thermalize(system: System, temperature: Any) -> System:
    """The system with the friction that its own noise needs for exp(−H/kT) to be invariant. Other forces stay.

    Noise Hamiltonians are balanced along their own fields, so that a Lie–Poisson system keeps its Casimirs (the double bracket): exp(−H/kT) is then
    invariant on each coadjoint orbit.

    system       a system with noise
    temperature  kT, a number or a function of t, and of parameters if it names them
    """
    if not isinstance(system, System):
        raise BismutError(f"thermalize needs a System, got {type(system).__name__}.")
    if not system.in_phase_space:
        check_quadratic(system, "thermalize")
    kT = Temperature(temperature, system.dtype)
    if kT.zero:
        raise DomainError("temperature must be positive: at kT = 0 no friction balances noise.")
    if system.in_phase_space:
        if system.random_forces:
            raise BismutError("thermalize balances noise Hamiltonians and stochastic potentials, but a random force has no Hamiltonian to balance.")
        return system.with_dissipation(BracketDissipation(kT))
    return system.with_dissipation(Drag(own_noise_friction(system), kT))
