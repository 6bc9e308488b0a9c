"""The compiled program that advances one block of trajectories.

Four successive steps share one block of the random generator, so the loop over steps is a loop over groups of four: the increments of a group are
drawn into a buffer and consumed by an inner loop. The buffer is what keeps the compiler from computing them again in every consumer.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from bismut.ensembles import lanes, moments, observable
from bismut.flows import flow
from bismut.mechanics import Scheme, State
from bismut.noise import PER_BLOCK, Index, Wiener, advance, pick, words

RECORDS = 64  # records kept on the device between two returns to Python
UNFAILED, FAILED_BEFORE = -10, -20  # marks in `Block.failed`; otherwise the step of a failure counted from the start of this call, or −1


class Block(NamedTuple):
    """Trajectories on their way: states, position in the path, and the first failure of each."""

    state: State
    step: Index
    failed: Int[Array, " n"]
    residual: Float[Array, " n"]
    present: Bool[Array, " n"]


class One(NamedTuple):
    """What one trajectory carries from step to step."""

    state: State
    failed: Int[Array, ""]
    residual: Float[Array, ""]


def step_of(scheme: Scheme) -> Callable:
    """One step of one trajectory. One that fails becomes NaN, so that no component of the new state has to wait for another.

    (Keeping the last good state instead would make every component depend on the finiteness of all, and be computed as often: 3 times slower.)
    """
    stepper = flow(scheme)

    def step(now: tuple[One, Float[Array, " m"]], h, t, passed) -> One:
        one, dW = now
        new, solve = stepper.advance(one.state, h, dW, t)
        alive = one.failed == UNFAILED
        broken = alive & ~finite(one.state)  # by the step before
        unsolved = alive & ~solve.converged
        state = jax.tree.map(lambda leaf: jnp.where(solve.converged, leaf, jnp.nan), new)
        failed = jnp.where(broken, passed - 1, jnp.where(unsolved, passed, one.failed))
        return One(state, failed, jnp.where(alive & (broken | unsolved), solve.residual, one.residual))

    return step


def finite(state: State) -> Bool[Array, ""]:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]).all()


def chosen_mode(scheme: Scheme, one: State, h) -> str:
    """Lanes for a step of few scalar operations, vmap for one that is array code already."""
    dtype = scheme.system.dtype
    example = (One(one, jnp.zeros((), jnp.int32), jnp.zeros((), dtype)), jnp.zeros(scheme.channels, dtype))
    h = jnp.asarray(h, dtype)
    size = lanes.operations(jax.make_jaxpr(lambda now: step_of(scheme)(now, h, h, jnp.zeros((), jnp.int32)))(example).jaxpr)
    return "lanes" if size <= lanes.LARGEST else "vmap"


@eqx.filter_jit
def run_block(scheme: Scheme, path: Wiener, h, t0, observe: tuple, by_lanes: bool, block: Block, index: Index, records, stride):
    """Advance `records` times by `stride` steps and keep moments before the first and after each; both are data, so nothing is compiled again."""
    system, n = scheme.system, block.failed.shape[0]
    m, dtype = scheme.channels, system.dtype
    batch, step = lanes.Batch(n, by_lanes), step_of(scheme)
    first = jax.tree.map(lambda leaf: leaf[0], block.state)
    like = One(first, block.failed[0], block.residual[0])
    measure = observable.bind(dict(observe), scheme, first)

    def time_at(k: Index):
        return t0 + h * (k[0].astype(dtype) + 2.0**32 * k[1].astype(dtype))

    def note(flat, k, buffer, row):
        one = batch.unpack(flat, like)
        values = jax.vmap(lambda state: measure(state, time_at(k)))(one.state)
        counted = block.present & (one.failed == UNFAILED) & jax.vmap(finite)(one.state)
        new = {name: moments.gather(value, counted) for name, value in values.items()}
        return jax.tree.map(lambda rows, value: rows.at[row].set(value), buffer, new)

    def advance_one(flat, dW, k, passed):
        # Channels are rows of dW, so a channel is a contiguous vector over trajectories.
        driven = [*flat, *(dW if by_lanes else [dW.T])]
        return batch.call(step, driven, (like, jnp.zeros(m, dtype)), h, time_at(k), passed)

    def group(carry, size_before, size_after):
        """The steps of one group of four that lie in this stretch."""
        flat, k, passed = carry
        normals = path.block(index, k, m, dtype)

        def inner(word, carry):
            flat, k, passed = carry
            flat = advance_one(flat, path.scaled(pick(normals, word), h), k, passed)
            return flat, advance(k, 1), passed + 1

        return jax.lax.fori_loop(size_before, size_after, inner, (flat, k, passed))

    def stretch(carry):
        flat, k, passed = carry
        if path.substeps > 1:
            fine = lambda _, c: (advance_one(c[0], path.scaled(path.sums(index, c[1], m, dtype), h), c[1], c[2]), advance(c[1], 1), c[2] + 1)
            return jax.lax.fori_loop(0, stride, fine, carry)
        begin = path.position(k).astype(jnp.int32)
        end = begin + stride

        def one_group(g, carry):
            return group(carry, jnp.maximum(begin - PER_BLOCK * g, 0), jnp.minimum(end - PER_BLOCK * g, PER_BLOCK))

        return jax.lax.fori_loop(0, (end + PER_BLOCK - 1) // PER_BLOCK, one_group, (flat, k, passed))

    def record(r, carry):
        flat, k, passed, buffer = carry
        flat, k, passed = stretch((flat, k, passed))
        return flat, k, passed, note(flat, k, buffer, r + 1)

    # A failure noted in an earlier call keeps its mark but not its step, which only that call could count.
    failed = jnp.where(block.failed == UNFAILED, UNFAILED, FAILED_BEFORE).astype(jnp.int32)
    flat = batch.pack(One(block.state, failed, block.residual))
    shapes = observable.shapes(measure, first, dtype)
    rows = {name: jax.eval_shape(moments.gather, jax.ShapeDtypeStruct((1, *shape), dtype), jnp.ones(1, bool)) for name, shape in shapes.items()}
    buffer = jax.tree.map(lambda leaf: jnp.zeros((RECORDS + 1, *leaf.shape), leaf.dtype), rows)
    buffer = note(flat, block.step, buffer, 0)
    flat, k, _, buffer = jax.lax.fori_loop(0, records, record, (flat, block.step, jnp.zeros((), jnp.int32), buffer))
    one = batch.unpack(flat, like)
    broken = (one.failed == UNFAILED) & ~jax.vmap(finite)(one.state)
    one = one._replace(failed=jnp.where(broken, records * stride - 1, one.failed), residual=jnp.where(broken, jnp.nan, one.residual))
    return Block(one.state, k, one.failed, one.residual, block.present), buffer


def at_start(state: State, dtype, present: Bool[Array, " n"]) -> Block:
    """A block before its first step."""
    n = present.shape[0]
    return Block(state, words(0), jnp.full(n, UNFAILED, jnp.int32), jnp.zeros(n, dtype), present)
