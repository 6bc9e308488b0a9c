"""When two functions are the same.

    f ~ g   if   code, defaults and attributes are equal, and closed-over values, bound objects and the globals they name are the same by this rule

Python calls functions equal only if they are one object, so a lambda written in a loop is a new function every time and a program compiled for it is
compiled again. `key_of` gives equal keys to functions that do the same, and never to two that may not. Data are compared by their contents at the
time of the call, so a changed list is a changed function. What cannot be inspected (an open file, a generator, an object with
state in C) leaves the function with Python's own equality.

Modules of Python, of JAX and of bismut do not change while a program runs: their functions and classes are compared as objects.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Hashable
from typing import Any

from bismut.function_hash.leaves import OpaqueError, Single, global_names, is_immutable, leaf_key

_NODES = 4_000  # objects that one key may visit; beyond that the walk costs more than compiling
_DEPTH = 200


def key_of(function: Callable) -> Hashable:
    """A hashable value, equal for functions that are the same."""
    try:
        return _Walk().key(function)
    except OpaqueError:
        pass
    if isinstance(function, types.MethodType):
        return Single(function.__self__), Single(function.__func__)
    return Single(function)


def can_compare(key: Hashable) -> bool:
    """Whether a key says what its function does; otherwise it is the object itself."""
    return not isinstance(key, Single)


class _Walk:
    """One traversal of everything a function reaches. A repeated object is replaced by its number, which also ends cycles."""

    def __init__(self):
        self.numbers: dict[int, int] = {}
        self.visited: list[Any] = []  # references, so that no address is used twice during the walk
        self.depth = 0

    def key(self, thing: Any) -> Hashable:
        leaf = leaf_key(thing)
        if leaf is not None:
            return leaf
        if id(thing) in self.numbers:
            return "visited", self.numbers[id(thing)]
        self.numbers[id(thing)] = len(self.visited)
        self.visited.append(thing)
        if len(self.visited) > _NODES or self.depth > _DEPTH:
            raise OpaqueError
        self.depth += 1
        key = self._inside(thing)
        self.depth -= 1
        return key

    def _inside(self, thing: Any) -> Hashable:
        kind = type(thing)
        if kind in _RULES:
            return _RULES[kind](self, thing)
        if issubclass(kind, type):
            return self._class(thing)
        if issubclass(kind, types.ModuleType):
            raise OpaqueError  # a module passed as a value: what will be read from it is unknown
        return self._instance(thing)

    def _function(self, function: types.FunctionType) -> Hashable:
        if function.__globals__.get("__name__") == "jaxtyping._decorator" and "__wrapped__" in function.__dict__:
            return self.key(function.__dict__["__wrapped__"])  # a wrapper that only checks shapes
        cells = tuple(self._cell(cell) for cell in function.__closure__ or ())
        own = self.key(function.__defaults__), self.key(function.__kwdefaults__), self.key(function.__dict__)
        # Not by function.__module__, which functools.wraps copies from elsewhere.
        named = () if is_immutable(function.__globals__.get("__name__")) else self._globals(function)
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
        return tuple((chain, self._chain(chain, space if chain[0] in space else builtins)) for chain in global_names(function.__code__))

    def _chain(self, chain: tuple[str, ...], space: dict[str, Any]) -> Hashable:
        """The value at the end of a name such as `model.constants.k`: as far as it leads through modules."""
        if chain[0] not in space:
            return "missing"
        value = space[chain[0]]
        for name in chain[1:]:
            if not isinstance(value, types.ModuleType) or is_immutable(value.__name__):
                break
            if name not in vars(value):
                raise OpaqueError
            value = vars(value)[name]
        return self.key(value)

    def _items(self, things: Any) -> Hashable:
        return type(things).__name__, tuple(self.key(thing) for thing in things)

    def _set(self, things: Any) -> Hashable:
        return type(things).__name__, frozenset(self.key(thing) for thing in things)

    def _mapping(self, mapping: Any) -> Hashable:
        # A string stands for itself: every other key is a tuple.
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
            if is_immutable(base.__module__):
                continue
            if not is_immutable(type(base).__module__):
                raise OpaqueError
            members += [(name, self.key(value)) for name, value in vars(base).items() if _is_behaviour(name, value)]
        return "class", Single(kind), tuple(members)

    def _instance(self, thing: Any) -> Hashable:
        """An object written in Python is its class and its attributes."""
        kind = type(thing)
        if _is_plain(kind):
            return "instance", self.key(kind), self.key(object.__getattribute__(thing, "__dict__"))
        if not _pickles_by_default(kind):
            raise OpaqueError
        try:
            _, arguments, state, items, pairs = thing.__reduce_ex__(4)
        except (TypeError, ValueError) as error:  # a state in C: Python would not pickle it either
            raise OpaqueError from error
        if items is not None or pairs is not None:
            raise OpaqueError
        return "instance", self.key(kind), self.key(arguments), self.key(state)


_RULES: dict[type, Callable[[_Walk, Any], Hashable]] = {
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


@functools.lru_cache(maxsize=1024)
def _is_plain(kind: type) -> bool:
    """Whether objects of a class are their attributes and nothing else, by what a blank one reduces to."""
    special = any(vars(base).get("__slots__") for base in kind.__mro__) or any(hasattr(kind, name) for name in _CUSTOM_STATE)
    plain = all(isinstance(vars(base).get("__dict__", _DICT), types.GetSetDescriptorType) for base in kind.__mro__)  # no other under this name
    if special or not plain or not kind.__dictoffset__ or not _pickles_by_default(kind):
        return False
    try:
        _, arguments, _, items, pairs = object.__new__(kind).__reduce_ex__(4)
    except Exception:  # a class may read its own attributes, of which a blank object has none
        return False
    return arguments == (kind,) and items is None and pairs is None


_DICT = vars(type("Plain", (), {}))["__dict__"]
_CUSTOM_STATE = ("__getnewargs__", "__getnewargs_ex__", "__del__")


def _pickles_by_default(kind: type) -> bool:
    return kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__ and kind.__getstate__ is object.__getstate__


def _is_behaviour(name: str, member: Any) -> bool:
    """Whether a member of a class determines what its objects do: neither a slot nor what Python and dataclasses record beside it."""
    if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType | type(dis.Instruction.opcode)) or name == "_abc_impl":
        return False
    return not name.startswith("__") or (callable(member) and not name.startswith("__annotate"))
