"""Fractional Brownian motion on a fixed grid.

    ⟨ΔX_j ΔX_k⟩ = ½ h^{2H} (|k−j+1|^{2H} − 2|k−j|^{2H} + |k−j−1|^{2H}),        ½ < H < 1

Increments have a long memory, so the number of steps N is chosen first. The covariance fits into a circulant matrix of size 2N, whose symmetric root
is a circulant C with C² = R (Davies & Harte), and X = C ζ with 2N normals a channel is exact in law. For H > ½ paths are smoother than Brownian ones,
with finite variation of order 1/H < 2: integrals along them are Young's, the calculus is the ordinary one, and no correction is needed anywhere.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.body_loops import each
from bismut.errors import DomainError
from bismut.noise.path import Path
from bismut.noise.wiener import Wiener
from bismut.programs.codegen.elementary.numbers import elementary
from bismut.registry import PATHS
from bismut.tracing import traced

_MOST = 4096  # steps: a draw takes 2N² multiplications


@PATHS.register
class FractionalBrownian(Path):
    """Noise with long memory: fractional Brownian motion.

    seed   a whole number
    hurst  H, between ½ and 1
    steps  N, the number of steps of the grid, at most 4096; the path ends there
    """

    noise: Wiener
    hurst: float
    root: Float[Array, " twice"]

    def __init__(self, seed: Any = 0, *, hurst: float, steps: int):
        if not 0.5 < hurst < 1:
            raise DomainError(f"hurst must lie between ½ and 1, got {hurst!r}. H = ½ is Wiener(seed); rougher paths need another calculus.")
        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or not 2 <= steps <= _MOST:
            raise DomainError(f"steps must be a whole number from 2 to {_MOST}, got {steps!r}.")
        self.noise, self.hurst = Wiener(seed), float(hurst)
        lag = np.minimum(np.arange(2 * steps), 2 * steps - np.arange(2 * steps)).astype(float)
        power = lambda x: elementary("pow", x, 2 * hurst)
        covariance = 0.5 * (power(lag + 1) - 2 * power(lag) + power(np.abs(lag - 1)))
        powers = np.maximum(_cosine_sum(covariance), 0.0)  # positive for H > ½, but for round-off
        self.root = jnp.asarray(_cosine_sum(np.sqrt(powers)) / (2 * steps))

    def __repr__(self) -> str:
        text = "..." if traced(self.noise) else f"{self.noise.seed_number}, hurst={self.hurst:g}, steps={self.grid}"
        return f"FractionalBrownian({text})"

    @property
    def grid(self) -> int:
        """N."""
        return len(self.root) // 2

    @property
    def normal_path(self) -> Wiener:
        return self.noise

    def check(self, *, channels, h, steps, trajectories):
        if not 0 <= steps <= self.grid:
            raise DomainError(f"The path has steps 0 to {self.grid}, but the run asks for step {steps}. FractionalBrownian(..., steps=N) needs more.")

    @property
    def per(self) -> int:
        return self.grid

    def draw(self, trajectory, step, channels, h, dtype=float, clipped=None):
        """All steps of the path, C ζ row by row."""
        if clipped not in (None, channels):
            steps = jnp.arange(self.grid, dtype=jnp.uint32)
            return jax.vmap(lambda k: self.increment(trajectory, (k, jnp.zeros_like(k)), channels, h, dtype, clipped=clipped))(steps)
        zeta = each(lambda i: self._zeta(trajectory, i, dtype), jnp.arange(channels, dtype=jnp.uint32))
        twice = self._twice(dtype)
        return jnp.asarray(h, dtype) ** jnp.asarray(self.hurst, dtype) * each(
            lambda k: zeta @ self._row(twice, k), jnp.arange(self.grid, dtype=jnp.uint32)
        )

    def _zeta(self, trajectory, channel, dtype) -> Float[Array, " twice"]:
        """The normals of one channel."""
        return each(lambda j: self.noise.normal(trajectory, (j, jnp.zeros_like(j)), channel, dtype), jnp.arange(2 * self.grid, dtype=jnp.uint32))

    def change(self, trajectory, step, channel, h):
        dtype = jnp.result_type(h)
        zeta = self._zeta(trajectory, channel, dtype)
        row = self._row(self._twice(dtype), step[0])
        return h ** jnp.asarray(self.hurst, dtype) * (row @ zeta)

    def _twice(self, dtype) -> Float[Array, " many"]:
        return jnp.concatenate([self.root, self.root]).astype(dtype)

    def _row(self, twice, k) -> Float[Array, " twice"]:
        """Row k of C is the root rotated by k: C_kj = c_{|k−j|}, and c is even. (The matrix itself would have 2N² entries, 268 MB at N = 4096.)"""
        begin = np.uint32(2 * self.grid) - k % np.uint32(2 * self.grid)
        return jax.lax.dynamic_slice(twice, (begin.astype(jnp.int32),), (2 * self.grid,))


def _cosine_sum(even: np.ndarray) -> np.ndarray:
    """Σ_j a_j cos(2π jk/n), the Fourier transform of an even sequence, term by term: a fast one would round as the processor likes."""
    n, k = len(even), np.arange(len(even) // 2 + 1)
    cosines = elementary("cos", 2 * np.pi / n * np.arange(n))
    total = np.zeros(len(k))
    for j in range(len(k)):
        total += (even[j] if j in (0, n // 2) else 2 * even[j]) * cosines[j * k % n]
    return np.concatenate([total, total[-2:0:-1]])
