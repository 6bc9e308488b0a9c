"""Caches of what is compiled, of one kind, and what their keys are; here that of functions (`compiled`), programs of engines are in `ensembles.task`.

    two calls share a program  if  their functions are the same (`function_hash`) and their arrays have the same shapes and types

Programs are keyed by what functions do, not by object identity, so a lambda written in a loop is compiled once. Memory is bounded: least recently
used entries are evicted.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import equinox as eqx
import jax

from bismut.function_hash import can_compare, key_of

log = logging.getLogger(__name__)

_CAPACITY = 32  # programs: each may hold some megabytes of machine code

Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")


class LRUCache:
    """Least-recently-used cache with a lock; `misses` counts how often a value had to be computed."""

    def __init__(self, capacity: int = _CAPACITY):
        self.capacity, self.misses = capacity, 0
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key; computed outside the lock if it is missing, since that may take seconds."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            value = self._values.setdefault(key, value)  # another thread may have been faster
            self.misses += 1
            while len(self._values) > self.capacity:
                self._values.popitem(last=False)
        return value

    def put(self, key: Hashable, value: Any) -> None:
        """Replace the value of a key, if it is still in the cache."""
        with self._lock:
            if key in self._values:
                self._values[key] = value

    def peek(self, key: Hashable) -> Any:
        """The value of a key, or None; its age is unchanged."""
        with self._lock:
            return self._values.get(key)

    def __len__(self) -> int:
        return len(self._values)


class ProgramKey:
    """A key hashed once: some are trees of hundreds of tuples, looked up several times a run."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Hashable):
        self.value, self._hash = value, hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ProgramKey) and self._hash == other._hash and self.value == other.value)


def program_key(tree: Any) -> ProgramKey:
    """Equal for trees whose functions are the same and whose arrays have the same shapes and types."""
    shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype) if eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct) else leaf, tree)
    value = key_of(shapes)
    if can_compare(value):
        return ProgramKey(value)
    # Something is opaque: the leaf that holds it is compared as Python does.
    leaves, structure = jax.tree.flatten(shapes)
    return ProgramKey((structure, tuple(map(key_of, leaves))))


def partition(tree: Any) -> tuple[tuple, Callable[[Any], Any]]:
    """The arrays of a tree, and the function that puts arrays back. It closes over the tree, so equal functions in two trees do no harm."""
    leaves, structure = jax.tree.flatten(tree)
    places = [i for i, leaf in enumerate(leaves) if eqx.is_array(leaf)]
    rest = [None if eqx.is_array(leaf) else leaf for leaf in leaves]

    def combine(arrays):
        new = list(rest)
        for i, array in zip(places, arrays, strict=True):
            new[i] = array
        return jax.tree.unflatten(structure, new)

    return tuple(leaves[i] for i in places), combine


_FUNCTIONS = LRUCache(128)


def compiled(function: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
    """The function as a compiled one: arrays in its arguments are data, everything else belongs to the program."""

    @wraps(function)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Value:
        arrays, combine = partition((arguments, named))

        def make():
            def inner(arrays):
                arguments, named = combine(arrays)
                return cast(Any, function)(*arguments, **named)

            log.debug("%s is compiled by XLA when it is called", function.__qualname__)
            inner.__name__ = function.__name__  # shown in the jaxpr
            return jax.jit(inner)

        program: Callable[[Any], Value] = _FUNCTIONS.get((function, program_key((arguments, named))), make)
        return program(arrays)

    return call
