"""Wiener paths as functions.

    ΔW_i(k) = √h ζ,    ζ = normal(seed, trajectory, step k, channel i)

and of nothing else: not of how many trajectories run together, on what device, or in which order. (The random words are the same to the bit
everywhere. Two different programs may round the normals computed from them differently in the last places, because a compiler is free to fuse a
multiplication with an addition; one program always gives the same bits.) One call of Threefry serves four successive steps of one channel, so a
loop over steps draws every fourth time and wastes nothing.

    refinement   a path with substeps = n sums n fine increments a step: step h with n substeps and step h/n with 1 see the same Brownian path
    shift        path.shift(s) is the path seen from step s on, the base flow θ_s of the paper: shift(s).shift(t) = shift(s + t), s and t of any sign
    bounded      |ζ| ≤ A_h = √(4 max(|ln h|, 1)), so that an implicit step exists almost surely; the change is below the order of the schemes (two
                 standard deviations from h = 1/e on, which is not small any more). Off by default: a seed is one path, whatever the scheme.
                 The bound is that of the step taken, so a bounded coarse increment is not a sum of bounded fine ones. Only the first `clipped`
                 channels are bounded, those that an implicit step uses (`scheme.path_channels`)
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, UInt32

from bismut.body_loops import each
from bismut.errors import DomainError
from bismut.noise.generator import Index, Stream, advance, counter, number, plus, threefry, two_normals
from bismut.noise.path import Path, check_shift, seed_counter
from bismut.programs.evaluation import numpy_eager
from bismut.registry import PATHS

PER_CALL = 4  # steps served by one call of the generator


@PATHS.register
class Wiener(Path):
    """Independent Wiener processes, one per channel, for every trajectory: a function of (seed, trajectory, step, channel) and of nothing else.

    seed      a whole number; inside jax.jit it may be traced
    substeps  how many fine increments are summed in a step: step h with n substeps and step h/n with 1 see the same Brownian path
    bounded   whether increments are cut at a few standard deviations, so that implicit steps exist almost surely
    """

    seed: Index
    offset: Index
    substeps: int = eqx.field(static=True)
    bounded: bool = eqx.field(static=True)

    def __init__(self, seed: Any = 0, *, substeps: Any = 1, bounded: bool = False):
        if isinstance(substeps, bool) or not isinstance(substeps, int) or substeps < 1:
            raise DomainError(f"substeps must be a whole number ≥ 1, got {substeps!r}.")
        self.seed = seed_counter(seed)
        self.offset = counter(0)
        self.substeps = substeps
        self.bounded = bounded

    def __repr__(self) -> str:
        if any(isinstance(word, Tracer) for word in (*self.seed, *self.offset)):
            return "Wiener(...)"  # inside a compiled function the seed is unknown
        chosen = (f", substeps={self.substeps}" if self.substeps > 1 else "") + (", bounded=True" if self.bounded else "")
        return f"Wiener({self.seed_number}{chosen})" + (f".shift({self.shifted_by})" if self.shifted_by else "")

    def shift(self, steps: Any) -> "Wiener":
        """θ_s: the path as seen from step s on; a negative s goes back, θ_{−s} θ_s = 1."""
        check_shift(steps)
        return eqx.tree_at(lambda path: path.offset, self, plus(self.offset, counter(steps)))

    @property
    def seed_number(self) -> int:
        """The seed as given."""
        return number(self.seed) % 2**64

    @property
    def shifted_by(self) -> int:
        """How many steps the path was shifted by."""
        return number(self.offset)

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
        """ΔW of one step, for one trajectory or an array of them; the channels are the last axis."""
        if self.substeps == 1:
            normals = pick(self.fours(trajectory, step, channels, dtype, stream), self.position(step))
        else:
            normals = self.sums(trajectory, step, channels, dtype, stream)
        return jnp.moveaxis(self.scaled(normals, h, clipped), 0, -1)

    def change(self, trajectory, step, channel, h):
        return jnp.sqrt(h) * self.normal(trajectory, step, channel, jnp.result_type(h))

    def normal(self, trajectory: Index, step: Index, channel, dtype: Any = float, stream: Stream = Stream.increment) -> Float[Array, ""]:
        """The normal of one step and one channel, without refinement."""
        here = self._shifted(step)
        return pick(_four(self.seed, trajectory, here, channel, dtype, stream), here[0] % PER_CALL)

    @property
    def normal_path(self) -> "Wiener":
        return self

    @property
    def per(self) -> int:
        return PER_CALL if self.substeps == 1 else 1

    def draw(self, trajectory: Index, step: Index, channels: int, h, dtype: Any = float, clipped: int | None = None) -> Float[Array, "per m"]:
        """ΔW of all steps that share a draw with this one, for one trajectory; the place of the first step of a run in its draw is `phase`."""
        if self.substeps > 1:
            return self.scaled(self.sums(trajectory, step, channels, dtype), h, clipped)[None]
        return jnp.moveaxis(self.scaled(jnp.moveaxis(self.fours(trajectory, step, channels, dtype), 1, 0), h, clipped), 0, 1)

    @property
    def phase(self) -> int:
        return self.shifted_by % self.per

    def normals(self, trajectory: Index, count: int, stream: Stream, dtype: Any = float) -> Float[Array, "... count"]:
        """Standard normals that belong to a trajectory but to no step; refinement and shifts leave them alone."""
        return jnp.moveaxis(_fours(self.seed, trajectory, counter(0), count, dtype, stream)[0], 0, -1)

    def fours(
        self, trajectory: Index, step: Index, channels: int, dtype: Any = float, stream: Stream = Stream.increment
    ) -> Float[Array, "four m ..."]:
        """The normals of the four steps that share a call of the generator with this one, which is at `position(step)`."""
        return _fours(self.seed, trajectory, self._shifted(step), channels, dtype, stream)

    def position(self, step: Index) -> UInt32[Array, ""]:
        """The position of a step among the four of its call."""
        return self._shifted(step)[0] % PER_CALL

    def scaled(self, normals: Float[Array, "m ..."], h, clipped: int | None = None) -> Float[Array, "m ..."]:
        """√h ζ; if the path is bounded, with the first `clipped` channels of ζ bounded, or all of them."""
        h = jnp.asarray(h, normals.dtype)
        if self.bounded:
            limit = jnp.sqrt(4 * jnp.maximum(jnp.abs(jnp.log(h)), 1.0))
            first = normals.shape[0] if clipped is None else clipped
            normals = jnp.concatenate([jnp.clip(normals[:first], -limit, limit), normals[first:]])
        return jnp.sqrt(h) * normals

    def _shifted(self, step: Index) -> Index:
        return plus(step, self.offset)

    def sums(self, trajectory: Index, step: Index, channels: int, dtype: Any = float, stream: Stream = Stream.increment) -> Float[Array, "m ..."]:
        """The normalised sum of the fine normals of one step."""
        first = _times(self._shifted(step), self.substeps)

        def add(j, total):
            fine = advance(first, j.astype(jnp.uint32))
            return total + pick(_fours(self.seed, trajectory, fine, channels, dtype, stream), fine[0] % PER_CALL)

        def add_four(j, total):
            fine = advance(first, (PER_CALL * j).astype(jnp.uint32))
            a, b, c, d = _fours(self.seed, trajectory, fine, channels, dtype, stream)
            return total + ((a + c) + (b + d))

        zero = jnp.zeros((channels, *jnp.shape(trajectory[0])), dtype)
        aligned = self.substeps % PER_CALL == 0
        total = jax.lax.fori_loop(0, self.substeps // (PER_CALL if aligned else 1), add_four if aligned else add, zero)
        return total * self.substeps**-0.5


def _four(seed: Index, trajectory: Index, step: Index, channel, dtype, stream: Stream) -> Float[Array, "four ..."]:
    low, high = (step[0] >> np.uint32(2)) | (step[1] << np.uint32(30)), step[1] >> np.uint32(2)
    a, b, c, d = threefry((seed[0], seed[1], high, jnp.uint32(stream)), (*trajectory, low, channel))
    return jnp.stack([*two_normals(a, b, dtype), *two_normals(c, d, dtype)])


def _fours(seed: Index, trajectory: Index, step: Index, channels: int, dtype, stream: Stream) -> Float[Array, "four m ..."]:
    if not channels:
        return jnp.zeros((PER_CALL, 0, *jnp.shape(trajectory[0])), dtype)
    four = lambda channel: _four(seed, trajectory, step, channel, dtype, stream)
    return jnp.moveaxis(each(four, jnp.arange(channels, dtype=jnp.uint32)), 1, 0)


def pick(four: Float[Array, "four ..."], position) -> Float[Array, "..."]:
    """The normals at one of the four positions of a call."""
    first, second, third, fourth = four
    return jnp.where(position < 2, jnp.where(position == 0, first, second), jnp.where(position == 2, third, fourth))


def _times(index: Index, n: int) -> Index:
    """index · n modulo 2⁶⁴, for n below 2³²: schoolbook multiplication in 16-bit halves."""
    low, high = index
    times, mask = np.uint32(n), np.uint32(0xFFFF)
    a, b, c, d = low & mask, low >> np.uint32(16), times & mask, times >> np.uint32(16)
    middle = b * c + ((a * c) >> np.uint32(16))
    cross = (middle & mask) + a * d
    carry = (middle >> np.uint32(16)) + (cross >> np.uint32(16)) + b * d
    return low * times, high * times + carry
