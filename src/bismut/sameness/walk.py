"""When two functions are the same.

    f ~ g   if   code, defaults and attributes are equal, and closed-over values, bound objects and the globals they name are the same by this rule

Python calls functions equal only if they are one object, so a lambda written in a loop is a new function every time and a program compiled for it is
compiled again. `key_of` gives equal keys to functions that do the same, and never to two that may not. Data are compared by what they hold at the
time of asking, so a changed list is a changed function. What cannot be looked into (an open file, a generator, an object with a state of its own
in C) leaves the function with the equality Python gives it.

Modules of Python, of JAX and of bismut do not change while a program runs: their functions and classes are compared as objects.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Hashable
from typing import Any

from bismut.sameness.classes import is_open, pickles_as_usual, written
from bismut.sameness.code import Opaque, chains, settled
from bismut.sameness.simple import Single, simple

_NODES = 4_000  # objects that one key may look into; beyond that looking costs more than compiling
_DEPTH = 200


def key_of(function: Callable) -> Hashable:
    """A hashable value, equal for functions that are the same."""
    try:
        return _Walk().key(function)
    except Opaque:
        pass
    if isinstance(function, types.MethodType):
        return Single(function.__self__), Single(function.__func__)
    return Single(function)


def can_compare(key: Hashable) -> bool:
    """Whether a key says what its function does; otherwise it is the object itself."""
    return not isinstance(key, Single)


class _Walk:
    """One look at everything a function reaches. What is met again is told by its number, which also ends circles."""

    def __init__(self):
        self.numbers: dict[int, int] = {}
        self.met: list[Any] = []  # kept, so that no address is used twice during the walk
        self.depth = 0

    def key(self, thing: Any) -> Hashable:
        known = simple(thing)
        if known is not None:
            return known
        if id(thing) in self.numbers:
            return "again", self.numbers[id(thing)]
        self.numbers[id(thing)] = len(self.met)
        self.met.append(thing)
        if len(self.met) > _NODES or self.depth > _DEPTH:
            raise Opaque
        self.depth += 1
        found = self._inside(thing)
        self.depth -= 1
        return found

    def _inside(self, thing: Any) -> Hashable:
        kind = type(thing)
        if kind in _LOOKS:
            return _LOOKS[kind](self, thing)
        if issubclass(kind, type):
            return self._class(thing)
        if issubclass(kind, types.ModuleType):
            raise Opaque  # it is passed on, and what will be read from it is not known
        return self._instance(thing)

    def _function(self, function: types.FunctionType) -> Hashable:
        if function.__globals__.get("__name__") == "jaxtyping._decorator" and "__wrapped__" in function.__dict__:
            return self.key(function.__dict__["__wrapped__"])  # shapes are checked, and nothing else is done
        cells = tuple(self._cell(cell) for cell in function.__closure__ or ())
        own = self.key(function.__defaults__), self.key(function.__kwdefaults__), self.key(function.__dict__)
        # Not by function.__module__, which functools.wraps copies from elsewhere.
        named = () if settled(function.__globals__.get("__name__")) else self._globals(function)
        return "function", function.__code__, cells, own, named

    def _cell(self, cell: types.CellType) -> Hashable:
        try:
            return self.key(cell.cell_contents)
        except ValueError:
            return "empty"

    def _globals(self, function: types.FunctionType) -> Hashable:
        space = function.__globals__
        inside = space.get("__builtins__", {})
        builtins = inside if isinstance(inside, dict) else vars(inside)
        return tuple((chain, self._chain(chain, space if chain[0] in space else builtins)) for chain in chains(function.__code__))

    def _chain(self, chain: tuple[str, ...], space: dict[str, Any]) -> Hashable:
        """The value at the end of a name such as `model.constants.k`: as far as it leads through modules."""
        if chain[0] not in space:
            return "missing"
        value = space[chain[0]]
        for name in chain[1:]:
            if not isinstance(value, types.ModuleType) or settled(value.__name__):
                break
            if name not in vars(value):
                raise Opaque
            value = vars(value)[name]
        return self.key(value)

    def _items(self, things: Any) -> Hashable:
        return type(things).__name__, tuple(self.key(thing) for thing in things)

    def _set(self, things: Any) -> Hashable:
        return type(things).__name__, frozenset(self.key(thing) for thing in things)

    def _mapping(self, mapping: Any) -> Hashable:
        # A name stands for itself: every other key is a tuple.
        return type(mapping).__name__, tuple((name if type(name) is str else self.key(name), self.key(value)) for name, value in mapping.items())

    def _method(self, method: Any) -> Hashable:
        return "method", self.key(method.__func__), self.key(method.__self__)

    def _partial(self, partial: functools.partial) -> Hashable:
        return "partial", self.key(partial.func), self.key(partial.args), self.key(partial.keywords), self.key(partial.__dict__)

    def _builtin(self, function: Any) -> Hashable:
        owner = function.__self__  # a module for `math.sin`, a list for `values.count`
        if owner is None or isinstance(owner, types.ModuleType):
            return Single(function)
        return "built-in method", function.__name__, self.key(owner)

    def _property(self, thing: property) -> Hashable:
        return "property", self.key(thing.fget), self.key(thing.fset), self.key(thing.fdel)

    def _wrapper(self, thing: Any) -> Hashable:
        return type(thing).__name__, self.key(thing.__func__)

    def _class(self, kind: type) -> Hashable:
        """A class is one object, and its methods may name what changes."""
        members = []
        for base in kind.__mro__:
            if settled(base.__module__):
                continue
            if not settled(type(base).__module__):
                raise Opaque
            members += [(name, self.key(value)) for name, value in vars(base).items() if written(name, value)]
        return "class", Single(kind), tuple(members)

    def _instance(self, thing: Any) -> Hashable:
        """An object written in Python is its class and its attributes."""
        kind = type(thing)
        if is_open(kind):
            return "instance", self.key(kind), self.key(object.__getattribute__(thing, "__dict__"))
        if not pickles_as_usual(kind):
            raise Opaque
        try:
            _, made_from, state, items, pairs = thing.__reduce_ex__(4)
        except (TypeError, ValueError) as error:  # a state in C: Python would not pickle it either
            raise Opaque from error
        if items is not None or pairs is not None:
            raise Opaque
        return "instance", self.key(kind), self.key(made_from), self.key(state)


_LOOKS: dict[type, Callable[[_Walk, Any], Hashable]] = {
    types.FunctionType: _Walk._function,
    types.MethodType: _Walk._method,
    functools.partial: _Walk._partial,
    types.BuiltinFunctionType: _Walk._builtin,
    tuple: _Walk._items,
    list: _Walk._items,
    dict: _Walk._mapping,
    types.MappingProxyType: _Walk._mapping,
    set: _Walk._set,
    frozenset: _Walk._set,
    property: _Walk._property,
    staticmethod: _Walk._wrapper,
    classmethod: _Walk._wrapper,
}
