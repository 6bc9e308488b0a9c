"""Wiener paths as functions.

    ΔW_i(k) = √h ζ,    ζ = normal(seed, trajectory, step k, channel i)

and of nothing else: not of how many trajectories run together, on what device, or in which order. (The random words are the same to the bit
everywhere. Two different programs may round the normals made from them differently in the last places, because a compiler is free to fuse a
multiplication with an addition; one program always gives the same bits.) One Threefry block serves four successive
steps of one channel, so a loop over steps draws every fourth time and wastes nothing.

    refinement   a path with substeps = n sums n fine increments a step: step h with n substeps and step h/n with 1 see one Brownian path
    shift        path.shift(s) is the path seen from step s on, the base flow θ_s of the paper: shift(s).shift(t) = shift(s + t)
    bounded      |ζ| ≤ A_h = √(4 max(|ln h|, 1)), so that an implicit step exists almost surely; the change is below the order of the schemes. The
                 bound is that of the step taken, so a bounded coarse increment is not a sum of bounded fine ones. Only the first `clipped`
                 channels are bounded, those that an implicit step sees: a scheme says how many (`scheme.clipped`)
"""

from enum import IntEnum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, UInt32

from bismut.errors import DomainError
from bismut.noise.gaussian import two_normals
from bismut.noise.threefry import threefry
from bismut.repetition import each

PER_BLOCK = 4  # steps served by one block of the generator

Index = tuple[UInt32[Array, "..."], UInt32[Array, "..."]]  # a 64-bit counter as (low, high) words, which exist without x64 too


class Stream(IntEnum):
    """What a random number is for; streams never share a number."""

    increment = 0
    start = 1


def words(index: Any) -> Index:
    """A non-negative 64-bit index (or an array of them) as a pair of 32-bit words."""
    if isinstance(index, Tracer):
        wide = jnp.asarray(index, jnp.uint64 if index.dtype.itemsize > 4 else jnp.uint32)
        high = (wide >> np.uint64(32)).astype(jnp.uint32) if wide.dtype == jnp.uint64 else jnp.zeros_like(wide)
        return wide.astype(jnp.uint32), high
    value = np.asarray(index, np.uint64)
    return jnp.asarray((value & 0xFFFFFFFF).astype(np.uint32)), jnp.asarray((value >> np.uint64(32)).astype(np.uint32))


def advance(index: Index, by: int | UInt32[Array, ""]) -> Index:
    """index + by, with the carry into the high word; by is less than 2³²."""
    low = index[0] + jnp.asarray(by, jnp.uint32)
    return low, index[1] + (low < index[0]).astype(jnp.uint32)


class Wiener(eqx.Module):
    """Independent Wiener processes, one per channel, for every trajectory: a function of (seed, trajectory, step, channel) and of nothing else.

    seed      a whole number
    substeps  how many fine increments are summed in a step: step h with n substeps and step h/n with 1 see one Brownian path
    bounded   whether increments are cut at a few standard deviations, so that implicit steps exist almost surely
    """

    seed: Index
    offset: Index
    substeps: int = eqx.field(static=True)
    bounded: bool = eqx.field(static=True)

    def __init__(self, seed: Any = 0, *, substeps: Any = 1, bounded: bool = False):
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
            raise DomainError(f"seed must be a whole number from 0 to 2⁶⁴ − 1, but {seed!r} came.")
        if isinstance(substeps, bool) or not isinstance(substeps, int) or substeps < 1:
            raise DomainError(f"substeps must be a whole number ≥ 1, but {substeps!r} came.")
        self.seed = words(int(seed))
        self.offset = words(0)
        self.substeps = substeps
        self.bounded = bounded

    def __repr__(self) -> str:
        if any(isinstance(word, Tracer) for word in (*self.seed, *self.offset)):
            return "Wiener(...)"  # inside a compiled function the seed is not known
        chosen = (f", substeps={self.substeps}" if self.substeps > 1 else "") + (", bounded=True" if self.bounded else "")
        return f"Wiener({self.seed_number}{chosen})" + (f".shift({self.shifted_by})" if self.shifted_by else "")

    def shift(self, steps: Any) -> "Wiener":
        """θ_s: the path as seen from step s on."""
        if not isinstance(steps, Tracer) and (isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0):
            raise DomainError(f"A path is shifted by a whole number of steps ≥ 0, but {steps!r} came.")
        low, high = advance(self.offset, words(steps)[0])
        return eqx.tree_at(lambda path: path.offset, self, (low, high + words(steps)[1]))

    @property
    def seed_number(self) -> int:
        """The seed as it was given."""
        return (int(self.seed[1]) << 32) + int(self.seed[0])

    @property
    def shifted_by(self) -> int:
        """How many steps the path was shifted by."""
        return (int(self.offset[1]) << 32) + int(self.offset[0])

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
            normals = pick(self.block(trajectory, step, channels, dtype, stream), self.position(step))
        else:
            normals = self.sums(trajectory, step, channels, dtype, stream)
        return jnp.moveaxis(self.scaled(normals, h, clipped), 0, -1)

    def increments(
        self, trajectory: Any, steps: int, channels: int, h: Any, dtype: Any = float, clipped: int | None = None
    ) -> Float[Array, "steps ... m"]:
        """ΔW of the first steps of one trajectory, given by its number, or of an array of them; one row a step."""
        numbers = jnp.arange(steps, dtype=jnp.uint32)
        return _increments(self, words(trajectory), numbers, channels, jnp.asarray(h, dtype), np.dtype(dtype).name, clipped)

    @property
    def per(self) -> int:
        """How many steps one draw serves."""
        return PER_BLOCK if self.substeps == 1 else 1

    def draw(self, trajectory: Index, step: Index, channels: int, h, dtype: Any = float, clipped: int | None = None) -> Float[Array, "per m"]:
        """ΔW of all steps that share a draw with this one, for one trajectory; the place of the first step of a run in its draw is `phase`."""
        if self.substeps > 1:
            return self.scaled(self.sums(trajectory, step, channels, dtype), h, clipped)[None]
        return jnp.moveaxis(self.scaled(jnp.moveaxis(self.block(trajectory, step, channels, dtype), 1, 0), h, clipped), 0, 1)

    @property
    def phase(self) -> int:
        """The place of step 0 in its draw."""
        return self.shifted_by % self.per

    def normals(self, trajectory: Index, count: int, stream: Stream, dtype: Any = float) -> Float[Array, "... count"]:
        """Standard normals that belong to a trajectory but to no step; refinement and shifts leave them alone."""
        return jnp.moveaxis(_block(self.seed, trajectory, words(0), count, dtype, stream)[0], 0, -1)

    def block(
        self, trajectory: Index, step: Index, channels: int, dtype: Any = float, stream: Stream = Stream.increment
    ) -> Float[Array, "four m ..."]:
        """The normals of the four steps that share a block of the generator with this one, which stands at `position(step)`."""
        return _block(self.seed, trajectory, self._shifted(step), channels, dtype, stream)

    def position(self, step: Index) -> UInt32[Array, ""]:
        """The place of a step within its block."""
        return self._shifted(step)[0] % PER_BLOCK

    def scaled(self, normals: Float[Array, "m ..."], h, clipped: int | None = None) -> Float[Array, "m ..."]:
        """√h ζ; if the path is bounded, with the first `clipped` channels of ζ bounded, or all of them."""
        h = jnp.asarray(h, normals.dtype)
        if self.bounded:
            limit = jnp.sqrt(4 * jnp.maximum(jnp.abs(jnp.log(h)), 1.0))
            first = normals.shape[0] if clipped is None else clipped
            normals = jnp.concatenate([jnp.clip(normals[:first], -limit, limit), normals[first:]])
        return jnp.sqrt(h) * normals

    def _shifted(self, step: Index) -> Index:
        low, high = advance(step, self.offset[0])
        return low, high + self.offset[1]

    def sums(self, trajectory: Index, step: Index, channels: int, dtype: Any = float, stream: Stream = Stream.increment) -> Float[Array, "m ..."]:
        """The normalised sum of the fine normals of one step."""
        first = _times(self._shifted(step), self.substeps)

        def add(j, total):
            fine = advance(first, j.astype(jnp.uint32))
            return total + pick(_block(self.seed, trajectory, fine, channels, dtype, stream), fine[0] % PER_BLOCK)

        def add_block(j, total):
            fine = advance(first, (PER_BLOCK * j).astype(jnp.uint32))
            a, b, c, d = _block(self.seed, trajectory, fine, channels, dtype, stream)
            return total + ((a + c) + (b + d))

        zero = jnp.zeros((channels, *jnp.shape(trajectory[0])), dtype)
        whole = self.substeps % PER_BLOCK == 0
        total = jax.lax.fori_loop(0, self.substeps // (PER_BLOCK if whole else 1), add_block if whole else add, zero)
        return total * self.substeps**-0.5


@eqx.filter_jit
def _increments(path: Wiener, trajectory: Index, steps: UInt32[Array, " steps"], channels: int, h, dtype: str, clipped: int | None):
    return jax.vmap(lambda k: path.increment(trajectory, (k, jnp.zeros_like(k)), channels, h, dtype, clipped=clipped))(steps)


def _block(seed: Index, trajectory: Index, step: Index, channels: int, dtype, stream: Stream) -> Float[Array, "four m ..."]:
    low, high = (step[0] >> np.uint32(2)) | (step[1] << np.uint32(30)), step[1] >> np.uint32(2)
    key = (seed[0], seed[1], high, jnp.uint32(stream))

    def four(channel):
        a, b, c, d = threefry(key, (*trajectory, low, channel))
        return jnp.stack([*two_normals(a, b, dtype), *two_normals(c, d, dtype)])

    if not channels:
        return jnp.zeros((PER_BLOCK, 0, *jnp.shape(trajectory[0])), dtype)
    return jnp.moveaxis(each(four, jnp.arange(channels, dtype=jnp.uint32)), 1, 0)


def pick(block: Float[Array, "four m ..."], position) -> Float[Array, "m ..."]:
    """The normals at one of the four positions of a block."""
    first, second, third, fourth = block
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
