"""The ends of a walk over what a function reaches: atoms, arrays by their contents, objects compared by identity, and the names its code reads."""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import Primitive

_IMMUTABLE_PACKAGES = frozenset({"bismut", "equinox", "jax", "jaxlib", "jaxtyping", "numpy", "scipy"})
_DYNAMIC = frozenset({"eval", "exec", "getattr", "globals", "locals", "vars", "__import__"})  # reach values that no name in the code shows
_SMALL = 2**20  # bytes of an immutable array that are compared; a larger one is the same only if it is one object
_LARGE = 2**26  # bytes of a NumPy array, which may change in place and is therefore always read


class OpaqueError(Exception):
    """An object that cannot be inspected."""


def is_immutable(module: str | None) -> bool:
    """Whether what a module defines does not change while a program runs."""
    return module is not None and _is_immutable_package(module.partition(".")[0])


@functools.cache
def _is_immutable_package(name: str) -> bool:
    """Those above, and the standard library (a file of the user may have the name of one of its modules)."""
    if name in _IMMUTABLE_PACKAGES or name in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return name in sys.stdlib_module_names and file.startswith((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")))


@functools.lru_cache(maxsize=1024)
def global_names(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """The global names a piece of code reads, each with the attributes taken from it at once, as in (model, constants, k)."""
    chains: dict[tuple[str, ...], None] = {}
    chain: list[str] = []
    before: tuple[Any, Any] = (None, None)  # the two operands before, of which an import takes the number of leading dots
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name == "IMPORT_NAME" and not (before[0] == 0 and is_immutable(value)):
            raise OpaqueError
        before = (before[1], value)
        if name in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain.append(value)
            continue
        if name in ("EXTENDED_ARG", "CACHE", "PUSH_NULL"):
            continue
        if chain:
            chains[tuple(chain)] = None
        chain = [value] if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS") else []
        if chain and value in _DYNAMIC:
            raise OpaqueError
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            chains |= dict.fromkeys(global_names(constant))
    return tuple(chains)


class Single:
    """An object compared by identity; the reference keeps its address from being reused."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Single) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __repr__(self) -> str:
        return f"one {type(self.thing).__name__}"


class TracerKey:
    """A tracer of JAX, compared by identity through a weak reference: a cache entry under it cannot be looked up after the trace."""

    __slots__ = ("number", "reference")

    def __init__(self, tracer: Tracer):
        self.number, self.reference = id(tracer), weakref.ref(tracer)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TracerKey) and self.reference() is other.reference() is not None)

    def __hash__(self) -> int:
        return self.number


_ATOMS = frozenset({str, bytes, int, bool, type(None), type(Ellipsis), type(NotImplemented), range})
# A compiled function of JAX caches what it was traced to, so its identity is its meaning.
_SINGLE = (np.ufunc, type(np.sum), type(jax.jit(abs)), Primitive, types.MethodDescriptorType, types.WrapperDescriptorType, enum.Enum)


def leaf_key(thing: Any) -> Hashable:
    """The key of an object that holds no others; None for every other object."""
    kind = type(thing)
    try:
        if kind in _ATOMS:
            return kind.__name__, thing
        key = _leaf_rule(kind)
    except TypeError:  # a metaclass without a hash
        raise OpaqueError from None
    return None if key is None else key(thing)


@functools.lru_cache(maxsize=1024)
def _leaf_rule(kind: type) -> Callable[[Any], Hashable] | None:
    """How objects of a type become keys, if they may be leaves. Decided by type: isinstance of an equinox object takes 2 µs."""
    if kind is tuple:  # a shape, whether or not two arrays share it
        return lambda thing: ("tuple", tuple((type(x).__name__, x) for x in thing)) if all(type(x) in _ATOMS for x in thing) else None
    if kind is float:
        return lambda thing: ("float", thing.hex())
    if kind is complex:
        return lambda thing: ("complex", thing.real.hex(), thing.imag.hex())
    if issubclass(kind, np.dtype):
        return lambda thing: ("dtype", thing)
    if issubclass(kind, Tracer):
        return lambda thing: ("one", TracerKey(thing))
    if issubclass(kind, _SINGLE):
        return lambda thing: ("one", Single(thing))
    if issubclass(kind, types.ModuleType):
        return lambda thing: ("one", Single(thing)) if is_immutable(thing.__name__) else None
    if issubclass(kind, type) and is_immutable(kind.__module__):
        return lambda thing: ("one", Single(thing)) if is_immutable(thing.__module__) else None
    if kind is np.ndarray or issubclass(kind, np.generic):
        return lambda thing: _numpy(np.asarray(thing), kind)
    return _jax if issubclass(kind, jax.Array) else None


def _numpy(array: np.ndarray, kind: type) -> Hashable:
    if array.dtype.hasobject or array.nbytes > _LARGE:
        raise OpaqueError
    return kind.__name__, array.dtype, array.shape, hashlib.sha256(array.tobytes()).digest()


def _jax(array: jax.Array) -> Hashable:
    plain = array.nbytes <= _SMALL and not jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended)
    if not plain or array.is_deleted() or not array.is_fully_addressable:
        return "one", Single(array)
    values = np.asarray(array)
    return "array", array.dtype, array.weak_type, array.sharding, array.shape, hashlib.sha256(values.tobytes()).digest()
