"""A number for what functions and data do, the same in every process.

    print(f) = SHA-256(code, constants, defaults, closed-over values, the globals it names, ...),    what `sameness` compares

Objects of Python, of JAX and of bismut stand for themselves by name, since their versions are compared apart; arrays by what they hold. Neither the
place of a function in its file nor its comments count. What cannot be looked into (an open file, a state in C) has no fingerprint. Code differs
between versions of Python, and so do fingerprints.
"""

from __future__ import annotations

import enum
import hashlib
import types
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np

from bismut.sameness.simple import Single
from bismut.sameness.walk import can_compare, key_of

_DIGITS = 32


def fingerprint(thing: Any) -> str | None:
    """32 hexadecimal digits; None for what cannot be looked into."""
    key = key_of(thing)
    if not can_compare(key):
        return None
    try:
        return _told(key).hex()[:_DIGITS]
    except _Nameless:
        return None


def fingerprint_of_arrays(tree: Any) -> str:
    """Of the arrays of a tree alone, however large."""
    seen = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        seen.update(_array(np.asarray(leaf)))
    return seen.hexdigest()[:_DIGITS]


class _Nameless(Exception):
    """Something that only this process knows."""


def _told(key: Hashable) -> bytes:
    kind = type(key)
    if isinstance(key, Single):
        return _one(key.thing)
    if kind is tuple:
        return _hash(b"tuple", *map(_told, key))  # type: ignore[arg-type]
    if kind is frozenset:
        return _hash(b"set", *sorted(map(_told, key)))  # type: ignore[arg-type]
    if isinstance(key, types.CodeType):
        return _code(key)
    if isinstance(key, jax.sharding.Sharding):
        return _hash(b"sharding")  # where an array lies changes no number
    if isinstance(key, str | bytes | int | float | np.dtype | range | type(None) | type(...)) or key is NotImplemented:
        return _hash(kind.__name__.encode(), key if isinstance(key, bytes) else repr(key).encode())
    raise _Nameless


def _code(code: types.CodeType) -> bytes:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    table = getattr(code, "co_exceptiontable", b"")
    return _hash(b"code", code.co_code, table, repr((names, counts)).encode(), *map(_constant, code.co_consts))


def _constant(value: Any) -> bytes:
    if isinstance(value, types.CodeType):
        return _code(value)
    if isinstance(value, tuple | frozenset):
        parts = map(_constant, value)
        return _hash(type(value).__name__.encode(), *(sorted(parts) if isinstance(value, frozenset) else parts))
    return _hash(type(value).__name__.encode(), repr(value).encode())


def _one(thing: Any) -> bytes:
    """Something that is itself: by name, an array by what it holds, a compiled function by what was compiled."""
    if isinstance(thing, np.ndarray | jax.Array):
        return _array(np.asarray(thing))
    inner = getattr(thing, "__wrapped__", None)
    if isinstance(inner, types.FunctionType):
        known = fingerprint(inner)
        if known is None:
            raise _Nameless
        return _hash(b"compiled", known.encode())
    if isinstance(thing, enum.Enum):
        return _hash(b"enum", type(thing).__qualname__.encode(), thing.name.encode())
    owner = getattr(thing, "__objclass__", None) or getattr(thing, "__self__", None)
    home = getattr(thing, "__module__", None) or getattr(owner, "__name__", None) or type(thing).__module__
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or getattr(thing, "name", None)
    if not isinstance(name, str) or "<locals>" in name or "<lambda>" in name:
        raise _Nameless
    return _hash(b"named", str(home).encode(), name.encode())


def _array(array: np.ndarray) -> bytes:
    if array.dtype.hasobject:
        raise _Nameless
    return _hash(b"array", array.dtype.str.encode(), repr(array.shape).encode(), array.tobytes())


def _hash(*parts: bytes) -> bytes:
    seen = hashlib.sha256()
    for part in parts:
        seen.update(len(part).to_bytes(8, "little") + part)
    return seen.digest()
