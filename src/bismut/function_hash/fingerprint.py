"""Hashes of what functions and data do, and of bismut itself, the same in every process.

    fingerprint(f)  = SHA-256(code, constants, defaults, closed-over values, the globals it names, ...),    what `keys.key_of` compares
    package_hash()  = SHA-256(path, text, path, text, ...)    of the Python files of bismut, in the order of paths, line ends as "\\n"

Objects of Python, of JAX and of bismut are hashed by name, since their versions are compared separately; arrays by their contents. Neither the
position of a function in its file nor its comments count. What cannot be inspected (an open file, a state in C) has no fingerprint. Code differs
between versions of Python, and so do fingerprints; traced programs would differ between versions of JAX, and not every function is traced.

A version of bismut stays the same over hundreds of commits, and an installed package knows no commit; its files are always there, so they are
hashed. Comments and docstrings count: to leave them out, all files would have to be parsed, 0.9 s instead of 20 ms.
"""

from __future__ import annotations

import enum
import hashlib
import types
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bismut.function_hash.keys import can_compare, key_of
from bismut.function_hash.leaves import Single

_DIGITS = 32


def fingerprint(thing: Any) -> str | None:
    """32 hexadecimal digits; None for what cannot be inspected."""
    key = key_of(thing)
    if not can_compare(key):
        return None
    try:
        return _digest(key).hex()[:_DIGITS]
    except _NamelessError:
        return None


def fingerprint_of_arrays(tree: Any) -> str:
    """Of the arrays of a tree alone, however large."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        digest.update(_array(np.asarray(leaf)))
    return digest.hexdigest()[:_DIGITS]


@cache
def package_hash() -> str:
    """The hash of the code of bismut, read once in a process; "unknown" where it is installed without its source."""
    return hash_of(Path(__file__).resolve().parents[1])


def hash_of(root: Path) -> str:
    """The hash of the Python files below a folder, its first 64 bits."""
    files = sorted((file.relative_to(root).as_posix(), file) for file in root.rglob("*.py"))
    total = hashlib.sha256()
    for name, file in files:
        text = file.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{name}\0{len(text)}\0".encode() + text)
    return total.hexdigest()[:16] if files else "unknown"


class _NamelessError(Exception):
    """An object that has no name outside this process."""


def _digest(key: Hashable) -> bytes:
    kind = type(key)
    if isinstance(key, Single):
        return _named(key.thing)
    if kind is tuple:
        return _hash(b"tuple", *map(_digest, key))  # type: ignore[arg-type]
    if kind is frozenset:
        return _hash(b"set", *sorted(map(_digest, key)))  # type: ignore[arg-type]
    if isinstance(key, types.CodeType):
        return _code(key)
    if isinstance(key, jax.sharding.Sharding):
        return _hash(b"sharding")  # where an array lies changes no number
    if isinstance(key, str | bytes | int | float | np.dtype | range | type(None) | type(...)) or key is NotImplemented:
        return _hash(kind.__name__.encode(), key if isinstance(key, bytes) else repr(key).encode())
    raise _NamelessError


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


def _named(thing: Any) -> bytes:
    """An object compared by identity: by its name, an array by its contents, a compiled function by what was compiled."""
    if isinstance(thing, np.ndarray | jax.Array):
        return _array(np.asarray(thing))
    inner = getattr(thing, "__wrapped__", None)
    if isinstance(inner, types.FunctionType):
        inside = fingerprint(inner)
        if inside is None:
            raise _NamelessError
        return _hash(b"compiled", inside.encode())
    if isinstance(thing, enum.Enum):
        return _hash(b"enum", type(thing).__qualname__.encode(), thing.name.encode())
    owner = getattr(thing, "__objclass__", None) or getattr(thing, "__self__", None)
    home = getattr(thing, "__module__", None) or getattr(owner, "__name__", None) or type(thing).__module__
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or getattr(thing, "name", None)
    if not isinstance(name, str) or "<locals>" in name or "<lambda>" in name:
        raise _NamelessError
    return _hash(b"named", str(home).encode(), name.encode())


def _array(array: np.ndarray) -> bytes:
    if array.dtype.hasobject:
        raise _NamelessError
    return _hash(b"array", array.dtype.str.encode(), repr(array.shape).encode(), array.tobytes())


def _hash(*parts: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()
