"""The programs of a block, compiled, on one device or on several.

On several devices a block is as many blocks side by side as there are devices: each device runs the same program on its own trajectories and knows
nothing of the others. What watchers remember has the devices as its first axis and is merged on the host, in order.
"""

from functools import cache, partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool

from bismut.ensembles.block import Block, begin_block, end_block, finite, run_block
from bismut.ensembles.observers.watcher import Setting
from bismut.flows import flow

_EACH, _ALL = PartitionSpec("device"), PartitionSpec()
_BLOCK: Any = Block(*cast(Any, (_EACH, _EACH, _ALL, _ALL, _EACH, _EACH)))


def local_devices() -> int:
    return jax.local_device_count()


def _first(tree):
    return jax.tree.map(lambda leaf: leaf[0], tree)


def _framed(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], tree)


def _begin(setting, state, step, present):
    block = begin_block(setting, state, step, present)
    return block._replace(memory=_framed(block.memory))


def _run(setting, every, block, index, ticks, stride, last):
    block, rows = run_block(setting, every, block._replace(memory=_first(block.memory)), index, ticks, stride, last)
    return block._replace(memory=_framed(block.memory)), _framed(rows)


def _end(setting, block, index):
    return _framed(end_block(setting, block._replace(memory=_first(block.memory)), index))


def _spread(function, devices: int, given: tuple, found: Any):
    """The function on all devices; `given` and `found` say which arguments and results are split between them."""
    if devices == 1:
        return eqx.filter_jit(function)
    mesh = Mesh(jax.local_devices()[:devices], ("device",))

    @eqx.filter_jit
    def everywhere(setting, *arguments):
        numbers, rest = eqx.partition(setting, eqx.is_array)
        inner = lambda numbers, *arguments: function(eqx.combine(numbers, rest), *arguments)
        return jax.shard_map(inner, mesh=mesh, in_specs=(_ALL, *given), out_specs=found, check_vma=False)(numbers, *arguments)

    return everywhere


class Programs:
    """begin, run and end of a block on a number of devices; made once, so that everything is compiled once."""

    def __init__(self, devices: int):
        self.devices = devices
        spread = partial(_spread, devices=devices)
        self.begin = spread(_begin, given=(_EACH, _ALL, _EACH), found=_BLOCK)
        self.run = spread(_run, given=(_ALL, _BLOCK, _EACH, _ALL, _ALL, _ALL), found=(_BLOCK, _EACH))
        self.end = spread(_end, given=(_BLOCK, _EACH), found=_EACH)

    def compilations(self) -> int:
        """How many programs have been compiled so far."""
        return sum(cast(Any, program)._cached._cache_size() for program in (self.begin, self.run, self.end))


@cache
def programs(devices: int = 1) -> Programs:
    return Programs(devices)


@eqx.filter_jit
def lost(block: Block) -> Bool[Array, " n"]:
    """Trajectories that are counted but not finite."""
    return block.present & ~jax.vmap(finite)(block.state)


@eqx.filter_jit
def residuals(setting: Setting, block: Block, index) -> tuple[Array, Array]:
    """How the next step of each trajectory is solved: its residual, and whether it converged."""
    scheme, t = setting.scheme, setting.time(block.step)
    dW = setting.path.increment(index, block.step, scheme.channels, setting.h, scheme.system.dtype, clipped=scheme.clipped)
    solve = jax.vmap(lambda state, w: flow(scheme).advance(state, setting.h, w, t)[1])(block.state, dW)
    return solve.residual, solve.converged
