"""Compiled functions, remembered by what they do and not by which object they are.

    two calls share a program  if  their functions are the same (`sameness`) and their numbers have the same shapes

A lambda that is written again in a loop compiles nothing again, and what was not used for long is forgotten: memory is bounded.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import equinox as eqx
import jax

from bismut.sameness import can_compare, key_of

log = logging.getLogger(__name__)

_MOST = 32  # programs kept: each may hold some megabytes of machine code

Value = TypeVar("Value")
Given = ParamSpec("Given")


class Memory:
    """The last so many values by their keys; `made` counts how often one had to be made."""

    def __init__(self, most: int = _MOST):
        self.most, self.made = most, 0
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            value = self._values.setdefault(key, value)  # another thread may have been faster
            self.made += 1
            while len(self._values) > self.most:
                self._values.popitem(last=False)
        return value

    def put(self, key: Hashable, value: Any) -> None:
        """Another value in place of one that is known."""
        with self._lock:
            if key in self._values:
                self._values[key] = value

    def peek(self, key: Hashable) -> Any:
        """What is known under a key, or None."""
        with self._lock:
            return self._values.get(key)

    def __len__(self) -> int:
        return len(self._values)


class Key:
    """A key that is hashed once: some are trees of hundreds of tuples, and are asked for several times a run."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Hashable):
        self.value, self._hash = value, hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Key) and self._hash == other._hash and self.value == other.value)


def key(tree: Any) -> Key:
    """Equal for trees whose functions are the same and whose arrays have the same shapes and types."""
    shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype) if eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct) else leaf, tree)
    found = key_of(shapes)
    if can_compare(found):
        return Key(found)
    # Something cannot be looked into: what holds it is compared as Python does.
    leaves, structure = jax.tree.flatten(shapes)
    return Key((structure, tuple(map(key_of, leaves))))


def split(tree: Any) -> tuple[tuple, Callable[[Any], Any]]:
    """The arrays of a tree, and the function that puts arrays in their place. It knows the tree, so equal functions in two trees do no harm."""
    leaves, structure = jax.tree.flatten(tree)
    places = [i for i, leaf in enumerate(leaves) if eqx.is_array(leaf)]
    rest = [None if eqx.is_array(leaf) else leaf for leaf in leaves]

    def whole(numbers):
        new = list(rest)
        for i, number in zip(places, numbers, strict=True):
            new[i] = number
        return jax.tree.unflatten(structure, new)

    return tuple(leaves[i] for i in places), whole


_FUNCTIONS = Memory(128)


def compiled(function: Callable[Given, Value]) -> Callable[Given, Value]:
    """The function as a compiled one: arrays in its arguments are data, everything else belongs to the program."""

    @wraps(function)
    def call(*arguments: Given.args, **named: Given.kwargs) -> Value:
        numbers, whole = split((arguments, named))

        def make():
            def inner(numbers):
                given, words = whole(numbers)
                return cast(Any, function)(*given, **words)

            log.debug("%s is compiled by XLA when it is called", function.__qualname__)
            inner.__name__ = function.__name__  # by which a jaxpr calls it
            return jax.jit(inner)

        program: Callable[[Any], Value] = _FUNCTIONS.get((function, key((arguments, named))), make)
        return program(numbers)

    return call
