"""Coloured noise: the integral of an Ornstein–Uhlenbeck process.

    dX = η dt,      ⟨η(t) η(s)⟩ = e^{−|t−s|/τ} / 2τ,           Var ΔX = h − τ(1 − e^{−h/τ}),      X → W  as  τ → 0

Exact in law at any h/τ. η is stationary and Markov, so its values on the grid follow by bisection: a value half way between known ones a and b, at
correlation ρ from each, is normal about ρ(a + b)/(1 + ρ²). Twenty bisections lead from values so far apart that they are independent (e^{−2²⁰h/τ}
below round-off) to both ends of any step, without knowing the steps before it. Given its ends,

    ΔX = τ tanh(h/2τ) (η_k + η_{k+1}) + √(h − 2τ tanh(h/2τ)) ζ_k

with the normals ζ_k of Wiener(seed): for τ → 0 the path becomes that very Wiener path. Drive by it is ordinary calculus, the limit Stratonovich's.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import DomainError
from bismut.noise.generator import Stream, advance
from bismut.noise.path import Path
from bismut.noise.wiener import Wiener
from bismut.registry import PATHS
from bismut.tracing import traced

_DEPTH = 20  # bisections
_DECORRELATED = 37.0  # correlation times: e^{−37} is half of the round-off of 1


@PATHS.register
class OrnsteinUhlenbeck(Path):
    """Noise with memory: X with dX = η dt, η an Ornstein–Uhlenbeck process of correlation time τ that integrates to unit intensity.

    seed              a whole number; for τ → 0 the path is that of Wiener(seed)
    correlation_time  τ, at most 28 000 steps
    """

    noise: Wiener
    correlation_time: Float[Array, ""]

    def __init__(self, seed: Any = 0, *, correlation_time: Any):
        if not traced(correlation_time) and (np.shape(correlation_time) != () or not 0 < correlation_time < np.inf):
            raise DomainError(f"correlation_time must be one positive number, got {correlation_time!r}. For noise without memory use Wiener(seed).")
        self.noise = Wiener(seed)
        self.correlation_time = jnp.asarray(correlation_time, float)

    def __repr__(self) -> str:
        known = not traced((self.noise, self.correlation_time))
        return (
            f"OrnsteinUhlenbeck({self.noise.seed_number}, correlation_time={float(self.correlation_time):g})" if known else "OrnsteinUhlenbeck(...)"
        )

    @property
    def normal_path(self) -> Wiener:
        return self.noise

    def check(self, *, channels, h, steps, trajectories):
        if not traced((self.correlation_time, h)) and 2**_DEPTH * h < _DECORRELATED * float(self.correlation_time):
            most = 2**_DEPTH / _DECORRELATED
            raise DomainError(
                f"correlation_time = {float(self.correlation_time):g} is {float(self.correlation_time) / h:.3g} steps, but at most {most:.3g} are "
                "possible. Noise this slow acts as a force: give it as a function of t."
            )

    def change(self, trajectory, step, channel, h):
        tau = self.correlation_time.astype(jnp.result_type(h))
        node = lambda at: self.noise.normal(trajectory, at, channel, jnp.result_type(h), Stream.colour)
        low = np.uint32(2**_DEPTH - 1)
        place = step[0] & low
        first = (step[0] & ~low, step[1])
        ends = node(first), node(advance(first, 2**_DEPTH))

        def halve(i, now):
            left, right, begin = now
            half = jnp.uint32(1) << (np.uint32(_DEPTH - 1) - i.astype(jnp.uint32))
            rho = jnp.exp(-half.astype(tau.dtype) * h / tau)
            middle_at = advance((first[0] | begin, first[1]), half)
            # ρ = ρ′: mean ρ(a + b)/(1 + ρ²), variance (1 − ρ²)/(1 + ρ²).
            middle = (rho * (left + right) + jnp.sqrt((1 - rho**2) * (1 + rho**2)) * node(middle_at)) / (1 + rho**2)
            later = (place & half) != 0
            return jnp.where(later, middle, left), jnp.where(later, right, middle), jnp.where(later, begin | half, begin)

        left, right, _ = jax.lax.fori_loop(0, _DEPTH, halve, (*ends, jnp.zeros_like(place)))
        x = h / (2 * tau)
        slope = jnp.tanh(x) / x
        near = x < 0.05  # 1 − tanh(x)/x cancels there
        rest = jnp.where(near, x**2 * (1 / 3 - x**2 * (2 / 15 - x**2 * (17 / 315 - 62 / 2835 * x**2))), 1 - slope)
        zeta = self.noise.normal(trajectory, step, channel, jnp.result_type(h))
        return 0.5 * h * slope * (left + right) / jnp.sqrt(2 * tau) + jnp.sqrt(h * rest) * zeta
