"""Euler–Maruyama for rigid bodies in a bath, with rotations pulled back by projection: what a straightforward program does.

    x1 = x + h v,    R1 = polar(R + h R ŵ),    p1 = p + h (ad*_v p − dU − rate p) + √(2 rate kT M) ΔW

It belongs to no room of methods: it is here to be compared with.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from bismut.flows import Flow
from bismut.flows.comparison import drift, exact
from bismut.mechanics import Claims, State
from bismut.spaces import add, scale
from bismut.spaces.rotation import hat


class ProjectedEulerMaruyama(Flow):
    """On (ℝ³ × SO(3))^K. `contact(t)` multiplies the bath, as the schedule of `Langevin` does; `masses` are (K, 1) and (K, 3)."""

    temperature: Any
    rate: Any
    masses: tuple[Any, Any]
    contact: Callable = eqx.field(static=True)
    claims = Claims(order=1)

    @property
    def channels(self) -> int:
        return self.system.space.dim

    def advance(self, state, h, dW, t):
        system, (x, R) = self.system, state.q
        v, force = drift(system, state.q, state.p, t)
        rate = self.rate * self.contact(t)
        kicks = system.space.unflatten(dW)
        noise = jax.tree.map(lambda m, z: jnp.sqrt(2 * rate * self.temperature * m) * z, self.masses, kicks)
        p = add(add(state.p, scale(h, force)), add(scale(-h * rate, state.p), noise))
        turned = R + h * jnp.einsum("kij,kjl->kil", R, jax.vmap(hat)(v[1]))
        return State((x + h * v[0], _polar(turned)), p), exact(system)


def _polar(A):
    """The nearest rotations, by four Newton–Schulz iterations: enough from a start within h|w| of them."""
    for _ in range(4):
        A = 1.5 * A - 0.5 * jnp.einsum("kij,klj,klm->kim", A, A, A)
    return A
