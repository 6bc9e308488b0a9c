"""Watching one function of the state."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from bismut.ensembles.observable import Measure, measure
from bismut.ensembles.observers.watcher import Sight, Watcher


class Measuring(Watcher):
    """A watcher of function(state) or function(state, t), an array of any shape; `measure` is that function fitted to a run."""

    function: Any = eqx.field(static=True)
    measure: Measure | None = eqx.field(default=None, kw_only=True)

    def bound(self, scheme, name, example):
        return eqx.tree_at(lambda w: w.measure, self, measure(self.function, scheme, name, example), is_leaf=lambda x: x is None)

    def values(self, sight: Sight) -> Float[Array, "n ..."]:
        """Of all trajectories at once."""
        assert self.measure is not None, "a watcher is bound before it looks"
        return self.measure(sight.state, sight.t)
