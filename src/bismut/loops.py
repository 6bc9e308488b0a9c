"""Loops that the compiler leaves apart.

A compiler for CPUs makes one loop of every array that is kept, and repeats in it whatever it shares with other loops. What is computed `apart` is a
call that it is told not to look into: a loop of its own, done once. (An `optimization_barrier` is dropped before loops are formed, and changes
nothing.)
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata


def apart(function: Callable, *values) -> Any:
    """function(*values), one array, as a loop of its own on a CPU."""
    if jax.default_backend() != "cpu":
        return function(*values)
    return set_xla_metadata(jax.jit(function)(*values), inlineable="false")
