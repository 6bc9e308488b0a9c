"""The compiled program that advances one block of trajectories, and those who watch it.

Four successive steps share one block of the random generator, so the loop over steps is a loop over groups of four: the increments of a group are
drawn into a buffer and consumed by an inner loop. Watchers look after each stretch of steps, those that are due; how the run is cut into
calls of this program changes nothing, because all that is remembered is in the block.
"""

from collections.abc import Callable
from functools import reduce
from math import gcd
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from bismut.ensembles import lanes
from bismut.ensembles.observers.watcher import Setting, Sight
from bismut.flows import flow, remember, resume
from bismut.mechanics import Scheme, State
from bismut.noise import PER_BLOCK, Index, advance, pick

ROWS = 64  # rows kept on the device between two returns to Python


class Block(NamedTuple):
    """Trajectories on their way: states, what their next step will use again, position in the path, steps since the watch began, who is counted, what
    watchers remember."""

    state: State
    found: Any
    step: Index
    passed: Int[Array, ""]
    present: Bool[Array, " n"]
    memory: tuple


class Rows(NamedTuple):
    """Rows written in one call, by those watchers that write any: how many, and the rows."""

    number: Int[Array, ""]
    rows: Any


def finite(state: State) -> Bool[Array, ""]:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]).all()


def step_of(scheme: Scheme) -> Callable:
    """One step of one trajectory, with what the step before found. One that fails becomes NaN and stays it, so nothing has to be carried along to
    know of it.

    (Keeping the last good state would make every component depend on the finiteness of all; a mark and a residual beside the state made the
    pendulum 5 times slower, because each is one more loop that computes the whole step.)
    """
    stepper = flow(scheme)

    def step(now: tuple[State, Any, Float[Array, " m"]], h, t) -> tuple[State, Any]:
        state, found, dW = now
        new, found, solve = resume(stepper, state, found, h, dW, t)
        return jax.tree.map(lambda leaf: jnp.where(solve.converged, leaf, jnp.nan), new), found

    return step


def example_of(scheme: Scheme, state: State) -> tuple[State, Any, Array]:
    dtype = scheme.system.dtype
    return state, remember(flow(scheme), state, jnp.zeros((), dtype)), jnp.zeros(scheme.channels, dtype)


def first_found(setting: Setting, states: State, step: Index) -> Any:
    """What the first step of every trajectory will use, by the kind of program that runs, so that a run cut in two has the same bits."""
    stepper, t = flow(setting.scheme), setting.time(step)
    like = _one(states)
    batch = lanes.Batch(jax.tree.leaves(states)[0].shape[0], setting.by_lanes)
    flat = batch.call(lambda state: remember(stepper, state, t), batch.pack(states), like)
    return batch.unpack(flat, jax.eval_shape(lambda state: remember(stepper, state, t), like))


def _one(many):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), many)


class Size(NamedTuple):
    """Scalar operations of a step, and entries of its largest array."""

    operations: int
    largest: int


_SIZES: dict[Any, Size] = {}  # of schemes met before, whatever their numbers: tracing a step takes as long as running it ten thousand times


def step_size(scheme: Scheme, one: State) -> Size:
    """How large a step is, which decides how an ensemble runs."""
    numbers, rest = eqx.partition((scheme, one), eqx.is_array)
    key = (jax.tree.structure(rest), tuple(jax.tree.leaves(rest)), tuple((leaf.shape, leaf.dtype.name) for leaf in jax.tree.leaves(numbers)))
    try:
        known = _SIZES.get(key)
    except TypeError:  # something in the scheme has no hash
        key, known = None, None
    if known is None:
        h = jnp.ones((), scheme.system.dtype)
        jaxpr = jax.make_jaxpr(lambda now: step_of(scheme)(now, h, h))(example_of(scheme, one)).jaxpr
        known = Size(lanes.operations(jaxpr), lanes.largest_array(jaxpr))
        if key is not None:
            _SIZES[key] = known
    return known


def chosen_mode(scheme: Scheme, one: State) -> str:
    """Lanes for a step of few scalar operations, vmap for one that is array code already."""
    return "lanes" if step_size(scheme, one).operations <= lanes.LARGEST else "vmap"


def tick_of(setting: Setting, every: int) -> int:
    """The number of steps after which somebody may have to look."""
    return reduce(gcd, [watcher.every or every for _, watcher in setting.watchers], 0) or every


def begin_block(setting: Setting, state: State, step: Index, present: Bool[Array, " n"]) -> Block:
    """A block whose watchers begin now."""
    sight = _sight(setting, state, step, present)
    memory = tuple(watcher.begin(setting, sight) for _, watcher in setting.watchers)
    return Block(state, first_found(setting, state, step), step, jnp.zeros((), jnp.int32), present, memory)


def end_block(setting: Setting, block: Block, index: Index) -> tuple:
    """The summaries of a block's watchers."""
    sight = _sight(setting, block.state, block.step, block.present)
    return tuple(watcher.end(m, setting, sight, index) for (_, watcher), m in zip(setting.watchers, block.memory, strict=True))


def run_block(setting: Setting, every, block: Block, index: Index, ticks, stride, last) -> tuple[Block, tuple]:
    """Advance `ticks` times by `stride` steps; after each, those look that are due. All of these are data, so nothing is compiled again.

    every   steps between looks of the watchers that have no stride of their own
    last    the step at which those that write rows look in any case
    """
    watchers = [watcher for _, watcher in setting.watchers]
    batch = lanes.Batch(block.present.shape[0], setting.by_lanes)
    like, walk = _walk(setting, batch, (block.state, block.found), index)

    def look(carry):
        flat, k, passed, memory, written = carry
        sight = _sight(setting, batch.unpack(flat, like)[0], k, block.present)
        memory, written = list(memory), list(written)
        for i, watcher in enumerate(watchers):
            due = (passed >= 0) & (passed % (watcher.every or every) == 0)
            if watcher.records:
                written[i] = jax.lax.cond(
                    due | (passed == last), lambda w, at=watcher: _write(w, at.row(setting, sight, index)), lambda w: w, written[i]
                )
            else:
                memory[i] = jax.lax.cond(due, lambda m, at=watcher: at.look(m, setting, sight), lambda m: m, memory[i])
        return flat, k, passed, tuple(memory), tuple(written)

    def tick(_, carry):
        flat, k, passed, memory, written = carry
        flat, k = walk(flat, k, stride)
        return look((flat, k, passed + stride, memory, written))

    row = lambda watcher: watcher.row(setting, _sight(setting, block.state, block.step, block.present), index)
    written = tuple(_blank(jax.eval_shape(lambda w=w: row(w))) if w.records else () for w in watchers)
    begin = (batch.pack((block.state, block.found)), block.step, block.passed, block.memory, written)
    flat, k, passed, memory, written = jax.lax.fori_loop(0, ticks, tick, begin)
    state, found = batch.unpack(flat, like)
    return Block(state, found, k, passed, block.present, memory), written


def _walk(setting: Setting, batch: lanes.Batch, many: tuple[State, Any], index: Index):
    """One trajectory's state and what it found, and the function that walks all of them a number of steps."""
    scheme, path, h = setting.scheme, setting.path, setting.h
    m, dtype = scheme.channels, scheme.system.dtype
    like = _one(many)
    step = step_of(scheme)

    @jax.jit  # traced once, however many loops it stands in
    def advance_all(flat, dW, t):
        # Channels are rows of dW, so a channel is a contiguous vector over trajectories.
        driven = [*flat, *(dW if batch.by_lanes else [dW.T])]
        return batch.call(step, driven, (*like, jax.ShapeDtypeStruct((m,), dtype)), h, t)

    def group(carry, begin, end):
        """The steps of one group of four from `begin` to before `end`."""
        normals = path.block(index, carry[1], m, dtype)

        def inner(word, carry):
            flat, k = carry
            return advance_all(flat, path.scaled(pick(normals, word), h, scheme.clipped), setting.time(k)), advance(k, 1)

        return jax.lax.fori_loop(begin, end, inner, carry)

    def fine(_, carry):
        flat, k = carry
        return advance_all(flat, path.scaled(path.sums(index, k, m, dtype), h, scheme.clipped), setting.time(k)), advance(k, 1)

    def walk(flat, k, stride):
        if path.substeps > 1:
            return jax.lax.fori_loop(0, stride, fine, (flat, k))
        begin = path.position(k).astype(jnp.int32)
        end = begin + stride

        def one_group(g, carry):
            return group(carry, jnp.maximum(begin - PER_BLOCK * g, 0), jnp.minimum(end - PER_BLOCK * g, PER_BLOCK))

        return jax.lax.fori_loop(0, (end + PER_BLOCK - 1) // PER_BLOCK, one_group, (flat, k))

    return like, walk


def _sight(setting: Setting, states: State, step: Index, present: Bool[Array, " n"]) -> Sight:
    return Sight(states, setting.time(step), step, present & jax.vmap(finite)(states))


def _blank(row) -> Rows:
    return Rows(jnp.zeros((), jnp.int32), jax.tree.map(lambda leaf: jnp.zeros((ROWS, *leaf.shape), leaf.dtype), row))


def _write(written: Rows, row) -> Rows:
    rows = jax.tree.map(lambda rows, value: rows.at[written.number].set(value), written.rows, row)
    return Rows(written.number + 1, rows)
