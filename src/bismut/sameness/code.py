"""What a piece of code reads beside its arguments, and what of that can change while a program runs."""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
import types
from typing import Any

SETTLED = frozenset({"bismut", "equinox", "jax", "jaxlib", "jaxtyping", "numpy", "scipy"})
_PEEKING = frozenset({"eval", "exec", "getattr", "globals", "locals", "vars", "__import__"})  # reach values that no name in the code tells of


class Opaque(Exception):
    """Something that cannot be looked into."""


def settled(module: str | None) -> bool:
    return module is not None and _package(module.partition(".")[0])


@functools.cache
def _package(name: str) -> bool:
    """Whether a package does not change: those above, and what came with Python (a file of the user may have a name of Python's own)."""
    if name in SETTLED or name in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return name in sys.stdlib_module_names and file.startswith((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")))


@functools.lru_cache(maxsize=1024)
def chains(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """The global names a piece of code reads, each with the attributes that are taken from it at once, as in (model, constants, k)."""
    found: dict[tuple[str, ...], None] = {}
    chain: list[str] = []
    before: tuple[Any, Any] = (None, None)  # the two operands before, of which an import takes the number of leading dots
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name == "IMPORT_NAME" and not (before[0] == 0 and settled(value)):
            raise Opaque
        before = (before[1], value)
        if name in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain.append(value)
            continue
        if name in ("EXTENDED_ARG", "CACHE", "PUSH_NULL"):
            continue
        if chain:
            found[tuple(chain)] = None
        chain = [value] if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS") else []
        if chain and value in _PEEKING:
            raise Opaque
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= dict.fromkeys(chains(constant))
    return tuple(found)
