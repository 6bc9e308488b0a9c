"""Random keys and bits in NumPy, to the bit those of JAX (Threefry-2x32).

An array of keys is one of pairs of 32-bit words, so it can be cut like any other.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from bismut.programs.operation import Operation, register

KEY = np.dtype([("first", np.uint32), ("second", np.uint32)])

_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))


def understood(dtype: Any) -> bool:
    """Whether keys of this type are made as it is done here."""
    return str(dtype) == "key<fry>" and bool(getattr(jax.config, "jax_threefry_partitionable", False))


def unwrapped(keys: Any) -> np.ndarray:
    return _pairs(*np.moveaxis(np.asarray(jax.random.key_data(keys)), -1, 0))


def wrapped(keys: np.ndarray) -> jax.Array:
    return jax.random.wrap_key_data(jax.device_put(np.stack(_words(keys), -1)), impl="threefry2x32")


def _pairs(first: Any, second: Any) -> np.ndarray:
    out = np.empty(np.shape(first), KEY)
    out["first"], out["second"] = first, second
    return out


def _words(keys: Any) -> tuple[np.ndarray, np.ndarray]:
    keys = np.asarray(keys)
    return keys["first"], keys["second"]


def _hash(keys: tuple, counts: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Threefry-2x32 with twenty rounds."""
    a, b = (np.asarray(word, np.uint32) for word in keys)
    schedule = (a, b, a ^ b ^ np.uint32(0x1BD11BDA))
    x, y = counts[0] + a, counts[1] + b
    for group in range(5):
        for turn in _TURNS[group % 2]:
            x = x + y
            y = ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn))) ^ x
        x, y = x + schedule[(group + 1) % 3], y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def _counted(keys: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """What the numbers 0, 1, ... in an array of this shape are turned into by each key."""
    numbers = np.arange(np.prod(shape, dtype=int), dtype=np.uint64).reshape(shape)
    spread = lambda word: word.reshape((*word.shape, *[1] * len(shape)))
    first, second = _words(keys)
    return _hash((spread(first), spread(second)), ((numbers >> np.uint64(32)).astype(np.uint32), numbers.astype(np.uint32)))


class _OnKeys(Operation):
    """An operation on keys; those of another kind than here are left to JAX."""

    def __init__(self, name: str, function: Callable):
        self.names, self.function = (name,), function
        register(self)

    def evaluate(self, equation, inputs):
        known = any(understood(v.aval.dtype) for v in (*equation.invars, *equation.outvars))
        return [self.function(equation.params, *inputs)] if known else None


def _seed(params: Any, seeds: Any) -> np.ndarray:
    seeds = np.asarray(seeds)
    high = (seeds.astype(np.uint64) >> np.uint64(32)) if seeds.dtype.itemsize == 8 else np.zeros(seeds.shape)
    return _pairs(high.astype(np.uint32), seeds.astype(np.uint32))


def _bits(params: Any, keys: Any) -> np.ndarray:
    high, low = _counted(keys, params["shape"])
    if params["bit_width"] == 64:
        return (high.astype(np.uint64) << np.uint64(32)) | low
    return (high ^ low).astype(f"uint{params['bit_width']}")


_OnKeys("random_seed", _seed)
_OnKeys("random_bits", _bits)
_OnKeys("random_split", lambda params, keys: _pairs(*_counted(keys, params["shape"])))
_OnKeys("random_fold_in", lambda params, keys, data: _pairs(*_hash(_words(keys), (np.uint32(0), np.asarray(data).astype(np.uint32)))))
_OnKeys("random_wrap", lambda params, counters: _pairs(*np.moveaxis(np.asarray(counters), -1, 0)))
_OnKeys("random_unwrap", lambda params, keys: np.stack(_words(keys), -1))
