"""When two functions are the same.

    f ~ g   if   code, defaults and attributes are equal, and closed-over values, bound objects and the globals they name are the same by this rule

Python calls functions equal only if they are one object, so a lambda written in a loop is a new function every time and a program compiled for it is
compiled again. `key_of` gives equal keys to functions that do the same, and never to two that may not. Data are compared by what they hold at the
time of asking, so a changed list is a changed function. What cannot be looked into (an open file, a generator, an object with a state of its own
in C) leaves the function with the equality Python gives it.

Modules of Python, of JAX and of bismut do not change while a program runs: their functions and classes are compared as objects.
"""

import dis
import enum
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import Primitive

SETTLED = frozenset({"bismut", "equinox", "jax", "jaxlib", "jaxtyping", "numpy", "scipy"})
_NODES = 4_000  # objects that one key may look into; beyond that looking costs more than compiling
_DEPTH = 200
_SMALL = 2**20  # bytes of an immutable array that are compared; a larger one is the same only if it is one object
_LARGE = 2**26  # bytes of a NumPy array, which may change in place and is therefore always read
_PEEKING = frozenset({"eval", "exec", "getattr", "globals", "locals", "vars", "__import__"})  # reach values that no name in the code tells of


def key_of(function: Callable) -> Hashable:
    """A hashable value, equal for functions that are the same."""
    try:
        return _Walk().key(function)
    except _Opaque:
        pass
    if isinstance(function, types.MethodType):
        return Single(function.__self__), Single(function.__func__)
    return Single(function)


def can_compare(key: Hashable) -> bool:
    """Whether a key says what its function does; otherwise it is the object itself."""
    return not isinstance(key, Single)


class _Opaque(Exception):
    """Something that cannot be looked into."""


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


class _Walk:
    """One look at everything a function reaches. What is met again is told by its number, which also ends circles."""

    def __init__(self):
        self.numbers: dict[int, int] = {}
        self.met: list[Any] = []  # kept, so that no address is used twice during the walk
        self.depth = 0

    def key(self, thing: Any) -> Hashable:
        simple = _simple(thing)
        if simple is not None:
            return simple
        if id(thing) in self.numbers:
            return "again", self.numbers[id(thing)]
        self.numbers[id(thing)] = len(self.met)
        self.met.append(thing)
        if len(self.met) > _NODES or self.depth > _DEPTH:
            raise _Opaque
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
            raise _Opaque  # it is passed on, and what will be read from it is not known
        return self._instance(thing)

    def _function(self, function: types.FunctionType) -> Hashable:
        if function.__globals__.get("__name__") == "jaxtyping._decorator" and "__wrapped__" in function.__dict__:
            return self.key(function.__dict__["__wrapped__"])  # shapes are checked, and nothing else is done
        cells = tuple(self._cell(cell) for cell in function.__closure__ or ())
        own = self.key(function.__defaults__), self.key(function.__kwdefaults__), self.key(function.__dict__)
        # Not by function.__module__, which functools.wraps copies from elsewhere.
        named = () if _settled(function.__globals__.get("__name__")) else self._globals(function)
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
        return tuple((chain, self._chain(chain, space if chain[0] in space else builtins)) for chain in _chains(function.__code__))

    def _chain(self, chain: tuple[str, ...], space: dict[str, Any]) -> Hashable:
        """The value at the end of a name such as `model.constants.k`: as far as it leads through modules."""
        if chain[0] not in space:
            return "missing"
        value = space[chain[0]]
        for name in chain[1:]:
            if not isinstance(value, types.ModuleType) or _settled(value.__name__):
                break
            if name not in vars(value):
                raise _Opaque
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
            if _settled(base.__module__):
                continue
            if not _settled(type(base).__module__):
                raise _Opaque
            members += [(name, self.key(value)) for name, value in vars(base).items() if _written(name, value)]
        return "class", Single(kind), tuple(members)

    def _instance(self, thing: Any) -> Hashable:
        """An object written in Python is its class and its attributes."""
        kind = type(thing)
        if _open(kind):
            return "instance", self.key(kind), self.key(object.__getattribute__(thing, "__dict__"))
        if not _pickles_as_usual(kind):
            raise _Opaque
        try:
            _, made_from, state, items, pairs = thing.__reduce_ex__(4)
        except (TypeError, ValueError) as error:  # a state in C: Python would not pickle it either
            raise _Opaque from error
        if items is not None or pairs is not None:
            raise _Opaque
        return "instance", self.key(kind), self.key(made_from), self.key(state)


@functools.lru_cache(maxsize=1024)
def _open(kind: type) -> bool:
    """Whether objects of a class are their attributes and nothing else, which Python tells of a blank one."""
    own = any(vars(base).get("__slots__") for base in kind.__mro__) or any(hasattr(kind, name) for name in _AT_WORK)
    plain = all(isinstance(vars(base).get("__dict__", _DICT), types.GetSetDescriptorType) for base in kind.__mro__)  # no other under this name
    if own or not plain or not kind.__dictoffset__ or not _pickles_as_usual(kind):
        return False
    try:
        _, made_from, _, items, pairs = object.__new__(kind).__reduce_ex__(4)
    except Exception:  # a class may look at its own attributes, of which a blank object has none
        return False
    return made_from == (kind,) and items is None and pairs is None


_DICT = vars(_Walk)["__dict__"]
_AT_WORK = ("__getnewargs__", "__getnewargs_ex__", "__del__")


def _pickles_as_usual(kind: type) -> bool:
    return kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__ and kind.__getstate__ is object.__getstate__


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

_ATOMS = frozenset({str, bytes, int, bool, type(None), type(Ellipsis), type(NotImplemented), range})
# A compiled function of JAX remembers what it was traced to, so it is its own identity there as well.
_SINGLE = (np.ufunc, type(np.sum), type(jax.jit(abs)), Primitive, types.MethodDescriptorType, types.WrapperDescriptorType, enum.Enum, Tracer)


def _simple(thing: Any) -> Hashable:
    """The key of what holds nothing else; None for everything else."""
    kind = type(thing)
    try:
        if kind in _ATOMS:
            return kind.__name__, thing
        look = _simple_look(kind)
    except TypeError:  # a class of a class that has no hash
        raise _Opaque from None
    return None if look is None else look(thing)


@functools.lru_cache(maxsize=1024)
def _simple_look(kind: type) -> Callable[[Any], Hashable] | None:
    """How things of a kind are looked at that may hold nothing else. Asked of their type: an object of equinox takes 2 µs to tell what it is."""
    if kind is tuple:  # a shape, whether or not two arrays share it
        return lambda thing: ("tuple", tuple((type(x).__name__, x) for x in thing)) if all(type(x) in _ATOMS for x in thing) else None
    if kind is float:
        return lambda thing: ("float", thing.hex())
    if kind is complex:
        return lambda thing: ("complex", thing.real.hex(), thing.imag.hex())
    if issubclass(kind, np.dtype):
        return lambda thing: ("dtype", thing)
    if issubclass(kind, _SINGLE):
        return lambda thing: ("one", Single(thing))
    if issubclass(kind, types.ModuleType):
        return lambda thing: ("one", Single(thing)) if _settled(thing.__name__) else None
    if issubclass(kind, type) and _settled(kind.__module__):
        return lambda thing: ("one", Single(thing)) if _settled(thing.__module__) else None
    if kind is np.ndarray or issubclass(kind, np.generic):
        return lambda thing: _numpy(np.asarray(thing), kind)
    return _jax if issubclass(kind, jax.Array) else None


def _numpy(array: np.ndarray, kind: type) -> Hashable:
    if array.dtype.hasobject or array.nbytes > _LARGE:
        raise _Opaque
    return kind.__name__, array.dtype, array.shape, hashlib.sha256(array.tobytes()).digest()


def _jax(array: jax.Array) -> Hashable:
    plain = array.nbytes <= _SMALL and not jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended)
    if not plain or array.is_deleted() or not array.is_fully_addressable:
        return "one", Single(array)
    values = np.asarray(array)
    return "array", array.dtype, array.weak_type, array.sharding, array.shape, hashlib.sha256(values.tobytes()).digest()


def _settled(module: str | None) -> bool:
    return module is not None and _settled_package(module.partition(".")[0])


@functools.cache
def _settled_package(name: str) -> bool:
    """Whether a package does not change: those above, and what came with Python (a file of the user may have a name of Python's own)."""
    if name in SETTLED or name in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return name in sys.stdlib_module_names and file.startswith((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")))


def _written(name: str, member: Any) -> bool:
    """Whether a member of a class says what its objects do: not where an attribute is kept, not what Python and dataclasses note beside it."""
    if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType | type(dis.Instruction.opcode)) or name == "_abc_impl":
        return False
    return not name.startswith("__") or (callable(member) and not name.startswith("__annotate"))


@functools.lru_cache(maxsize=1024)
def _chains(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """The global names a piece of code reads, each with the attributes that are taken from it at once, as in (model, constants, k)."""
    found: dict[tuple[str, ...], None] = {}
    chain: list[str] = []
    before: tuple[Any, Any] = (None, None)  # the two operands before, of which an import takes the number of leading dots
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name == "IMPORT_NAME" and not (before[0] == 0 and _settled(value)):
            raise _Opaque
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
            raise _Opaque
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= dict.fromkeys(_chains(constant))
    return tuple(found)
