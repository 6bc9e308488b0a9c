"""Compound-Poisson jumps.

    X_i(t) = Σ_{jumps up to t} J,       jumps at `rate` λ per unit time in each channel, sizes J normal about `size` with standard deviation `spread`

In the sense of Marcus a jump J of a noise γ takes the state along the flow of Jγ for a unit of time. A potential γ(q) leaves q where it is and
takes p to p + J dγ(q), which is the kick of every action; so steps stay symplectic and conserve momentum maps, whatever the jumps. Several jumps
in one step of one channel add up: n of them, with n by inversion of the Poisson law, are normal about n·size with variance n·spread².
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import DomainError
from bismut.noise.generator import Stream, threefry
from bismut.noise.path import Path
from bismut.noise.wiener import Wiener
from bismut.registry import PATHS
from bismut.tracing import traced

_MOST_EXPECTED, _MOST = 2.0, 32  # jumps a step and channel: more than 32 where 2 are expected have probability 1e−28


@PATHS.register
class Jumps(Path):
    """Kicks at random times: compound-Poisson, in the sense of Marcus.

    seed    a whole number
    rate    jumps per unit time in each channel, at most two per step
    size    mean of their sizes
    spread  standard deviation of their sizes
    """

    jumps = True
    noise: Wiener
    rate: Float[Array, ""]
    size: Float[Array, ""]
    spread: Float[Array, ""]

    def __init__(self, seed: Any = 0, *, rate: Any, size: Any = 1.0, spread: Any = 0.0):
        for name, value, least in (("rate", rate, 0.0), ("size", size, -np.inf), ("spread", spread, 0.0)):
            if not traced(value) and (np.shape(value) != () or not np.isfinite(value) or not value >= least):
                raise DomainError(f"{name} must be one finite number{'' if least < 0 else ' ≥ 0'}, got {value!r}.")
        self.noise = Wiener(seed)
        self.rate, self.size, self.spread = (jnp.asarray(value, float) for value in (rate, size, spread))

    def __repr__(self) -> str:
        if traced((self.noise, self.rate, self.size, self.spread)):
            return "Jumps(...)"
        return f"Jumps({self.noise.seed_number}, rate={float(self.rate):g}, size={float(self.size):g}, spread={float(self.spread):g})"

    @property
    def normal_path(self) -> Wiener:
        return self.noise

    def check(self, *, channels, h, steps, trajectories):
        if not traced((self.rate, h)) and float(self.rate) * h > _MOST_EXPECTED:
            raise DomainError(
                f"rate = {float(self.rate):g} is {float(self.rate) * h:.3g} jumps per step, but at most {_MOST_EXPECTED:g} are allowed. "
                "Use a smaller step; jumps this frequent are nearly a Wiener path."
            )

    def change(self, trajectory, step, channel, h):
        dtype = jnp.result_type(h)
        seed = self.noise.seed
        a, b, _, _ = threefry((seed[0], seed[1], step[1], jnp.uint32(Stream.jump)), (*trajectory, step[0], channel))
        u = (a.astype(dtype) + (b.astype(dtype) + 0.5) * 2.0**-32) * 2.0**-32
        mean = self.rate.astype(dtype) * h

        def count(i, now):
            number, chance, below = now
            more = u > below
            chance = chance * mean / (i + 1).astype(dtype)
            return jnp.where(more, number + 1, number), chance, below + chance

        none = jnp.exp(-mean)
        number, _, _ = jax.lax.fori_loop(0, _MOST, count, (jnp.zeros((), dtype), none, none))
        return number * self.size.astype(dtype) + jnp.sqrt(number) * self.spread.astype(dtype) * self.noise.normal(trajectory, step, channel, dtype)
