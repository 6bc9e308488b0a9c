"""Paths that may drive a run.

    ΔX_i(k) = X_i(t_{k+1}) − X_i(t_k),       a function of (trajectory, step k, channel i) and of the step size h, and of nothing else

Any path can be given where a Wiener path can. One of your own is a subclass with one method, `change`, for a single trajectory and a single channel;
it is traced by JAX, so it is written with `jax.numpy`, and what it needs beside its arguments are fields, arrays of which may be traced too. Steps
and trajectories are 64-bit counters, as pairs (low, high) of 32-bit words.

Only the noise of the system follows the path. The normals of a heat bath, and those of Maxwell starts, belong to no path: they are those of the seed.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, UInt32

from bismut.body_loops import each
from bismut.errors import DomainError
from bismut.noise.generator import Index, Stream, counter, number, plus
from bismut.programs.evaluation import numpy_eager

if TYPE_CHECKING:
    from bismut.noise.wiener import Wiener


class Path(eqx.Module):
    """A driving path. To define your own, subclass it with `change(trajectory, step, channel, h)` and, optionally, `check`.

    jumps  whether increments stay finite when the step goes to zero, so that a kick must be the flow of a noise for unit time (Marcus)
    """

    jumps: ClassVar[bool] = False

    @abstractmethod
    def change(self, trajectory: Index, step: Index, channel: UInt32[Array, ""], h) -> Float[Array, ""]:
        """ΔX of one channel over one step of one trajectory."""

    def check(self, *, channels: int, h: float, steps: int, trajectories: int) -> None:
        """Reject a run that this path cannot drive, by its numbers of channels, steps and trajectories, the last two counted from 0."""
        del channels, h, steps, trajectories

    # What runs call; a path with a cheaper way than channel by channel overrides it.

    @numpy_eager
    def increment(
        self,
        trajectory: Index,
        step: Index,
        channels: int,
        h,
        dtype: Any = float,
        stream: Stream = Stream.increment,
        clipped: int | None = None,
    ) -> Float[Array, "... m"]:
        """ΔX of one step, for one trajectory or an array of them; the channels are the last axis, and after the first `clipped` plain normals."""
        del stream  # for plain normals only
        if np.ndim(trajectory[0]):
            return jax.vmap(lambda one: self.increment(one, step, channels, h, dtype, clipped=clipped))(trajectory)
        driven = channels if clipped is None else clipped
        changes = self.changes(trajectory, step, driven, jnp.asarray(h, dtype)).astype(dtype) if driven else jnp.zeros(0, dtype)
        if driven == channels:
            return changes
        return jnp.concatenate([changes, self.normal_path.increment(trajectory, step, channels, h, dtype)[driven:]])

    def changes(self, trajectory: Index, step: Index, channels: int, h) -> Float[Array, " m"]:
        """ΔX of one step and one trajectory."""
        return each(lambda channel: self.change(trajectory, step, channel, h), jnp.arange(channels, dtype=jnp.uint32))

    def increments(
        self, trajectory: Any, steps: int, channels: int, h: Any, dtype: Any = float, clipped: int | None = None
    ) -> Float[Array, "steps ... m"]:
        """ΔX of the first steps of one trajectory, given by its number, or of an array of them; one row per step."""
        numbers = jnp.arange(steps, dtype=jnp.uint32)
        return _increments(self, counter(trajectory), numbers, channels, jnp.asarray(h, dtype), np.dtype(dtype).name, clipped)

    @property
    def per(self) -> int:
        """How many steps one draw serves."""
        return 1

    @property
    def phase(self) -> int:
        """The place of step 0 in its draw."""
        return 0

    def draw(self, trajectory: Index, step: Index, channels: int, h, dtype: Any = float, clipped: int | None = None) -> Float[Array, "per m"]:
        """ΔX of all steps that share a draw with this one, for one trajectory; the place of the first step of a run in its draw is `phase`."""
        return self.increment(trajectory, step, channels, h, dtype, clipped=clipped)[None]

    def normals(self, trajectory: Index, count: int, stream: Stream, dtype: Any = float) -> Float[Array, "... count"]:
        """Standard normals that belong to a trajectory but to no step."""
        return self.normal_path.normals(trajectory, count, stream, dtype)

    def shift(self, steps: Any) -> Path:
        """θ_s: the path as seen from step s on; a negative s goes back, θ_{−s} θ_s = 1."""
        check_shift(steps)
        return Shifted(self, counter(steps))

    @property
    def normal_path(self) -> Wiener:
        """Where plain normals come from; Wiener(0) unless a subclass has its own."""
        from bismut.noise.wiener import Wiener  # a path itself

        return Wiener(0)

    @property
    def seed_number(self) -> int:
        """The seed of the plain normals."""
        return self.normal_path.seed_number


class Shifted(Path):
    """A path seen from another step on."""

    of: Path
    offset: Index

    def __repr__(self) -> str:
        return f"{self.of!r}.shift({number(self.offset)})"

    @property
    def jumps(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.of.jumps

    @property
    def normal_path(self) -> Wiener:
        plain = self.of.normal_path
        return eqx.tree_at(lambda path: path.offset, plain, plus(plain.offset, self.offset))

    def check(self, *, channels, h, steps, trajectories):
        first = number(self.offset)
        if first < 0:
            self.of.check(channels=channels, h=h, steps=first, trajectories=trajectories)
        self.of.check(channels=channels, h=h, steps=steps + first, trajectories=trajectories)

    def change(self, trajectory, step, channel, h):
        return self.of.change(trajectory, plus(step, self.offset), channel, h)

    def changes(self, trajectory, step, channels, h):
        return self.of.changes(trajectory, plus(step, self.offset), channels, h)

    def shift(self, steps):
        check_shift(steps)
        return Shifted(self.of, plus(self.offset, counter(steps)))


def check_shift(steps: Any) -> None:
    if not isinstance(steps, Tracer) and (isinstance(steps, bool) or not isinstance(steps, int | np.integer)):
        raise DomainError(f"A path is shifted by a whole number of steps, got {steps!r}.")


def seed_counter(seed: Any) -> Index:
    """The counter of a seed: a whole number, or one integer in an array, which may be traced, so that one program serves all seeds."""
    one = isinstance(seed, jax.Array | np.ndarray) and seed.shape == () and seed.dtype.kind in "iu"
    if one and isinstance(seed, Tracer):
        return counter(seed)
    if isinstance(seed, bool) or not (one or isinstance(seed, int | np.integer)) or not 0 <= int(seed) < 2**64:
        raise DomainError(f"seed must be a whole number from 0 to 2⁶⁴ − 1, got {seed!r}.")
    return counter(int(seed))


@eqx.filter_jit
def _increments(path: Path, trajectory: Index, steps: UInt32[Array, " steps"], channels: int, h, dtype: str, clipped: int | None):
    return jax.vmap(lambda k: path.increment(trajectory, (k, jnp.zeros_like(k)), channels, h, dtype, clipped=clipped))(steps)
