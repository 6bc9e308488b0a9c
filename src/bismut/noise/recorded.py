"""A path from data.

ΔX_i(k) = data[k, i],       or data[trajectory, k, i]
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import DomainError, ShapeError
from bismut.noise.path import Path
from bismut.noise.wiener import Wiener
from bismut.registry import PATHS
from bismut.tracing import traced


@PATHS.register
class Recorded(Path):
    """Increments from data: measured, or generated elsewhere.

    increments  ΔX, an array (steps, channels) that all trajectories share, or (trajectories, steps, channels)
    step        the step of the data, if runs with a different step should be rejected
    seed        of the normals that are not part of the path: those of Maxwell starts and heat baths
    """

    data: Float[Array, "trajectories steps m"]
    step: Any
    noise: Wiener

    def __init__(self, increments: Any, *, step: float | None = None, seed: Any = 0):
        data = increments if traced(increments) else np.asarray(increments)
        if data.ndim not in (2, 3) or 0 in data.shape[:-1]:
            raise ShapeError(f"Recorded increments have shape (steps, channels) or (trajectories, steps, channels), got {data.shape}.")
        if not traced(data) and not np.isfinite(data.astype(float)).all():
            raise DomainError("Recorded increments must be finite. Fill gaps first, say by interpolating the path.")
        self.data = jnp.asarray(data[None] if data.ndim == 2 else data, float)
        self.step = step
        self.noise = Wiener(seed)

    @classmethod
    def of_values(cls, values: Any, *, step: float | None = None, seed: Any = 0) -> "Recorded":
        """From values X(t_k) of the path, one more than steps, with the channels as the last axis."""
        return cls(np.diff(np.asarray(values, float), axis=-2), step=step, seed=seed)

    def __repr__(self) -> str:
        return f"Recorded({self.data.shape[1]} steps, {self.data.shape[2]} channels, {self._paths})"

    @property
    def _paths(self) -> str:
        return "one path for all trajectories" if self.data.shape[0] == 1 else f"{self.data.shape[0]} paths"

    @property
    def normal_path(self) -> Wiener:
        return self.noise

    def check(self, *, channels, h, steps, trajectories):
        paths, available, recorded = self.data.shape
        if channels != recorded:
            raise ShapeError(f"The recorded path has {recorded} channels, but the noise of the system has {channels}.")
        if not 0 <= steps <= available:
            raise DomainError(f"The recorded path has steps 0 to {available}, but the run asks for step {steps}. Record more, or run fewer steps.")
        if paths > 1 and trajectories > paths:
            raise DomainError(f"{paths} paths were recorded, but the run has trajectory {trajectories - 1}. Record one path for all, or more.")
        if self.step is not None and not traced(h) and abs(float(h) - self.step) > 1e-9 * self.step:
            raise DomainError(f"The path was recorded with a step of {self.step:g}, but the run takes {float(h):g}.")

    def change(self, trajectory, step, channel, h):
        del h
        return self.changes(trajectory, step, self.data.shape[-1], None)[channel]

    def changes(self, trajectory, step, channels, h):
        del h
        own = trajectory[0].astype(jnp.int32) if self.data.shape[0] > 1 else jnp.zeros((), jnp.int32)
        row = jax.lax.dynamic_slice(self.data, (own, step[0].astype(jnp.int32), jnp.zeros((), jnp.int32)), (1, 1, channels))
        return row[0, 0]
