"""The keys of what holds nothing else: atoms, arrays by what they hold, and what is only itself."""

from __future__ import annotations

import enum
import functools
import hashlib
import types
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import Primitive

from bismut.sameness.code import Opaque, settled

_SMALL = 2**20  # bytes of an immutable array that are compared; a larger one is the same only if it is one object
_LARGE = 2**26  # bytes of a NumPy array, which may change in place and is therefore always read


class Single:
    """An object compared by identity, and kept alive so that its address is not used again."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Single) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __repr__(self) -> str:
        return f"one {type(self.thing).__name__}"


class Traced:
    """A tracer of JAX, compared by identity and not kept alive: what is remembered under it cannot be asked for when the trace is over."""

    __slots__ = ("number", "reference")

    def __init__(self, tracer: Tracer):
        self.number, self.reference = id(tracer), weakref.ref(tracer)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Traced) and self.reference() is other.reference() is not None)

    def __hash__(self) -> int:
        return self.number


_ATOMS = frozenset({str, bytes, int, bool, type(None), type(Ellipsis), type(NotImplemented), range})
# A compiled function of JAX remembers what it was traced to, so it is its own identity there as well.
_SINGLE = (np.ufunc, type(np.sum), type(jax.jit(abs)), Primitive, types.MethodDescriptorType, types.WrapperDescriptorType, enum.Enum)


def simple(thing: Any) -> Hashable:
    """The key of what holds nothing else; None for everything else."""
    kind = type(thing)
    try:
        if kind in _ATOMS:
            return kind.__name__, thing
        look = _look(kind)
    except TypeError:  # a class of a class that has no hash
        raise Opaque from None
    return None if look is None else look(thing)


@functools.lru_cache(maxsize=1024)
def _look(kind: type) -> Callable[[Any], Hashable] | None:
    """How things of a kind are looked at that may hold nothing else. Asked of their type: an object of equinox takes 2 µs to tell what it is."""
    if kind is tuple:  # a shape, whether or not two arrays share it
        return lambda thing: ("tuple", tuple((type(x).__name__, x) for x in thing)) if all(type(x) in _ATOMS for x in thing) else None
    if kind is float:
        return lambda thing: ("float", thing.hex())
    if kind is complex:
        return lambda thing: ("complex", thing.real.hex(), thing.imag.hex())
    if issubclass(kind, np.dtype):
        return lambda thing: ("dtype", thing)
    if issubclass(kind, Tracer):
        return lambda thing: ("one", Traced(thing))
    if issubclass(kind, _SINGLE):
        return lambda thing: ("one", Single(thing))
    if issubclass(kind, types.ModuleType):
        return lambda thing: ("one", Single(thing)) if settled(thing.__name__) else None
    if issubclass(kind, type) and settled(kind.__module__):
        return lambda thing: ("one", Single(thing)) if settled(thing.__module__) else None
    if kind is np.ndarray or issubclass(kind, np.generic):
        return lambda thing: _numpy(np.asarray(thing), kind)
    return _jax if issubclass(kind, jax.Array) else None


def _numpy(array: np.ndarray, kind: type) -> Hashable:
    if array.dtype.hasobject or array.nbytes > _LARGE:
        raise Opaque
    return kind.__name__, array.dtype, array.shape, hashlib.sha256(array.tobytes()).digest()


def _jax(array: jax.Array) -> Hashable:
    plain = array.nbytes <= _SMALL and not jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended)
    if not plain or array.is_deleted() or not array.is_fully_addressable:
        return "one", Single(array)
    values = np.asarray(array)
    return "array", array.dtype, array.weak_type, array.sharding, array.shape, hashlib.sha256(values.tobytes()).digest()
