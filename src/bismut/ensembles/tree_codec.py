"""Pytrees as nested dictionaries of arrays and a form that JSON can hold, and back: no pickle.

    Moments(n, mean, ...)  ↔  {"n": array, "mean": array, ...}  and the form  {"Moments": ["a", "a", ...]};  numbers of Python stand in the form

Only classes that the reader knows are constructed, by name: those in the modules of the observer that wrote the tree. A file can name which of them
it holds, and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from bismut.ensembles import moments
from bismut.errors import StoreError
from bismut.mechanics import State
from bismut.mechanics.state import BoxLedger, Ledger

_NUMBERS = {"int": int, "float": float.fromhex, "bool": bool}
_PLAIN = {"list": list, "tuple": tuple}
_FORMER = {"Ends": "PassageCounts"}  # names under which classes of today stand in older files

Form = Any


def write(tree: Any) -> tuple[Any, Form]:
    """Copies of the arrays of a tree, and its form."""
    if tree is None:
        return None, None
    kind = type(tree).__name__
    if isinstance(tree, np.ndarray | np.generic | jax.Array):
        return np.array(tree), "a"
    if kind in _NUMBERS:
        return None, [kind, tree.hex() if kind == "float" else tree]
    if isinstance(tree, Mapping):
        return _several(kind="dict", names=list(map(str, tree)), parts=list(tree.values()))
    if kind in _PLAIN and type(tree) in _PLAIN.values():
        return _several(kind, [str(i) for i in range(len(tree))], list(tree))
    names = _fields(type(tree))
    if names is None:
        raise StoreError(f"A {kind} cannot be stored: a summary is made of arrays, numbers, lists, tuples, dictionaries and NamedTuples.")
    return _several(kind, names, [getattr(tree, name) for name in names])


def _several(kind: str, names: list[str], parts: list[Any]) -> tuple[Any, Form]:
    written = [write(part) for part in parts]
    arrays = {name: arrays for name, (arrays, _) in zip(names, written, strict=True) if arrays is not None}
    forms = [form for _, form in written]
    return arrays, {kind: dict(zip(names, forms, strict=True)) if kind == "dict" else forms}


def read(arrays: Any, form: Form, known: Mapping[str, type]) -> Any:
    """The tree of such arrays; `known` are the classes that it may hold, by name."""
    if form is None:
        return None
    if form == "a":
        return _array(arrays)
    if isinstance(form, list) and len(form) == 2 and form[0] in _NUMBERS:
        return _NUMBERS[form[0]](form[1])
    if not isinstance(form, dict) or len(form) != 1:
        raise StoreError(f"{str(form)[:100]} is not a form of a stored tree.")
    ((kind, forms),) = form.items()
    if kind == "dict" and isinstance(forms, dict):
        return {name: read(_part(arrays, name), each, known) for name, each in forms.items()}
    if not isinstance(forms, list):
        raise StoreError(f"{str(form)[:100]} is not a form of a stored tree.")
    if kind in _PLAIN:
        return _PLAIN[kind](read(_part(arrays, str(i)), each, known) for i, each in enumerate(forms))
    kind = kind if kind in known else _FORMER.get(kind, kind)
    names = _fields(known[kind]) if kind in known else None
    if names is None or len(names) != len(forms):
        raise StoreError(f"A stored tree holds a {kind!r}, which is unknown here.")
    return known[kind](*(read(_part(arrays, name), each, known) for name, each in zip(names, forms, strict=True)))


def _array(arrays: Any) -> np.ndarray:
    if not isinstance(arrays, np.ndarray):
        raise StoreError("An array of a stored tree is missing.")
    return arrays


def _part(arrays: Any, name: str) -> Any:
    return arrays.get(name) if isinstance(arrays, Mapping) else None


def _fields(kind: type) -> list[str] | None:
    """The names of what a NamedTuple, or a state, holds."""
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return list(kind._fields)  # type: ignore[attr-defined]
    return list(kind.__dataclass_fields__) if kind in (State, Ledger, BoxLedger) else None


def classes(things: Iterable[Any]) -> dict[str, type]:
    """The classes that may stand in trees of these things: those in the modules that define them."""
    modules = [sys.modules.get(kind.__module__) for thing in things for kind in type(thing).__mro__ if kind is not eqx.Module]
    known = {"State": State, "Ledger": Ledger, "BoxLedger": BoxLedger}
    for module in (moments, *modules):
        known |= {name: kind for name, kind in vars(module).items() if isinstance(kind, type) and _fields(kind)} if module else {}
    return known


def leaves(tree: Any) -> list[np.ndarray]:
    """Copies of the leaves of a tree whose structure the reader knows."""
    return [np.array(leaf) for leaf in jax.tree.leaves(tree)]


def like(example: Any, stored: list[np.ndarray], what: str) -> Any:
    """The tree with copies of these leaves, each of the shape and type that the example has: programs of the machine trust them, and write there."""
    old, structure = jax.tree.flatten(example)
    shapes = lambda parts: [(np.shape(part), np.asarray(part).dtype) for part in parts]
    if len(old) != len(stored) or shapes(old) != shapes(stored):
        raise StoreError(f"{what} does not fit this run: it holds {len(stored)} arrays of other shapes or types. It was made by another run.")
    return structure.unflatten(
        [type(was)(now.item()) if isinstance(was, int | float) else np.array(now) for was, now in zip(old, stored, strict=True)]
    )
