"""The dissipation that balances noise Hamiltonians.

    dz = X_H dt + Σ X_{H_i} ∘ (dW_i + c_i dt),        c_i = −{H, H_i}/2kT            makes exp(−H/kT) invariant

The generator is {f, H} − (1/2kT) Σ {H, H_i}{f, H_i} + ½ Σ {{f, H_i}, H_i}, and each {·, H_i} keeps the Liouville measure, so the last two make a
reversible diffusion. Dissipation is nothing but a drift of the Wiener processes: it moves a state along the very fields that the noise does. So on
the dual of an algebra it keeps every Casimir: with H_i = √(2θkT) μ_i on so(3)* it is the double bracket θ μ × (μ × ∇H). For γ(q) it is the friction
−(1/2kT) Σ dγ_i ⟨dγ_i, v⟩ of `thermalize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import equinox as eqx
import jax
from jaxtyping import Array, Float

from bismut.mechanics.directional import along
from bismut.mechanics.hamiltonian import hamiltonian_field
from bismut.spaces import Point, Velocity

if TYPE_CHECKING:
    from bismut.mechanics.heat import Temperature
    from bismut.mechanics.system import System


class BracketDissipation(eqx.Module):
    """The dissipation of noise Hamiltonians at a temperature."""

    temperature: Temperature

    def rates(self, system: System, q: Point, p: Velocity, t) -> Float[Array, " m"]:
        """c_i, the drift of each Wiener process."""
        return -energy_brackets(system, q, p, t) / (2 * self.temperature(system.time(t), system.parameters))

    def __call__(self, system: System, q: Point, v: Velocity, t) -> Velocity:
        """Zero as a force: it moves positions, too, and schemes of phase space take `rates`."""
        return system.space.zero(system.dtype)


def energy_brackets(system: System, q: Point, p: Velocity, t) -> Float[Array, " m"]:
    """{H, H_i} of every noise, as −dH_i along the field of H: one field for all of them."""
    space = system.space
    rates = hamiltonian_field(space, lambda q, p: system.hamiltonian(q, p, t), q, p)
    zero = jax.tree.map(lambda leaf: 0 * leaf, p)
    return -along(lambda e, p: system.noise_hamiltonian(space.nudge(q, e), p, t), (zero, p), rates, system.noise_has_jvp)
