"""Watching one function of the state."""

from typing import Any

import equinox as eqx
import jax

from bismut.ensembles.observable import measure, value_of
from bismut.ensembles.observers.watcher import Watcher
from bismut.mechanics import Scheme, State


class Measuring(Watcher):
    """A watcher of function(state) or function(state, t), an array of any shape."""

    function: Any = eqx.field(static=True)

    def bound(self, scheme, name, example):
        measure(self.function, scheme, name, example)
        return self

    def value(self, scheme: Scheme, state: State, t) -> jax.Array:
        """Of one trajectory."""
        return value_of(self.function, scheme, state, t)
