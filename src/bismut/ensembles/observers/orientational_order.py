"""Orientational order of bodies.

    p = (1/N) Σ u_i,      Q = (1/N) Σ (d u_i u_iᵀ − 1)/(d − 1),      u_i = R_i a

    P₁ = n·p,     P₂ = n·Q n     along a given director n;      |p| and the largest eigenvalue of Q of each configuration without one

Averaged over time and trajectories as `time_average` does it, with its errors. Without a director P₁ and P₂ of N independent directions are not 0 but
about 1/√N.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.ensembles.observable import bare_value
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.time_average import TimeAverage
from bismut.errors import DomainError, ShapeError
from bismut.formatting import with_error
from bismut.mechanics.bodies import inventory
from bismut.mechanics.bodies.order import largest_eigenvalue, nematic_tensor, polarisation
from bismut.registry import OBSERVERS

_TURNING = {"bodies": 1, "turning": 0}  # which array of a point holds rotations


class OrientationalOrder(TimeAverage):
    """Polar and nematic order of directions. `function` returns them; without it they are R a, of body axes a."""

    axis: tuple[float, ...] = eqx.field(static=True)
    director: tuple[float, ...] = eqx.field(static=True)

    def bound(self, scheme, name, example):
        shape = jax.eval_shape(lambda state: self._directions(scheme, state, 0.0, name), example).shape
        if len(shape) != 2 or shape[1] not in (2, 3):
            raise ShapeError(
                f"observe[{name!r}]: orientational_order needs directions (n, 3), or (n, 2) in the plane, got an array of shape {shape}."
            )
        if self.director and len(self.director) != shape[1]:
            raise ShapeError(f"observe[{name!r}]: director must have {shape[1]} components, as directions have, got {len(self.director)}.")
        return self

    def _directions(self, scheme, state, t, name: str = ""):
        if self.function is not None:
            return jnp.asarray(bare_value(self.function, scheme, state, t), scheme.system.dtype)
        known = inventory(scheme.system)
        place = None if known is None or known.count is None else _TURNING.get(known.kind)
        if place is None:
            raise DomainError(
                f"observe[{name!r}]: orientational_order needs several bodies that turn in space, got {scheme.space}. "
                "Give of=, a function of a State that returns directions (n, 3)."
            )
        return jax.tree.leaves(state.q)[place] @ jnp.asarray(self.axis, scheme.system.dtype)

    def value(self, scheme, state, t):
        """(p, Q, P₁, P₂) as one vector."""
        u = self._directions(scheme, state, t)
        p, Q = polarisation(u), nematic_tensor(u)
        if self.director:
            n = jnp.asarray(self.director, u.dtype)
            order = [n @ p, n @ Q @ n]
        else:
            order = [jnp.sqrt(p @ p), largest_eigenvalue(Q)]
        return jnp.concatenate([p, Q.ravel(), jnp.stack(order)])

    def report(self, name, summary, clock):
        vector = super().report(name, summary, clock).variables
        d = round((-1 + np.sqrt(4 * len(vector["mean"][1]) - 7)) / 2)  # d + d² + 2 numbers
        one, both = (f"{name}_axis",), (f"{name}_axis", f"{name}_other")
        pieces = {"polarisation": (one, slice(0, d), (d,)), "nematic": (both, slice(d, d + d * d), (d, d))}
        pieces |= {"P1": ((), slice(-2, -1), ()), "P2": ((), slice(-1, None), ())}
        variables = {}
        for kind, (axes, part, shape) in pieces.items():
            for statistic, suffix in (("mean", ""), ("stderr", "_stderr")):
                variables[f"{kind}{suffix}"] = (axes, vector[statistic][1][part].reshape(shape))
        variables |= {f"{kind}_trusted": ((), np.asarray(vector["trusted"][1][place])) for kind, place in (("P1", -2), ("P2", -1))}
        values = [with_error(variables[kind][1], variables[f"{kind}_stderr"][1]) for kind in ("P1", "P2")]
        along = f"along {self.director}" if self.director else "along the director of each configuration"
        doubt = "" if vector["trusted"][1][-2:].all() else "; the errors are not to be trusted, as those of time_average would say"
        return ObserverReport(name, variables, {}, f"P1 = {values[0]}, P2 = {values[1]} {along}{doubt}")


@OBSERVERS.register
@checked()
def orientational_order(
    of: Callable | None = None, *, axis: Any = (0.0, 0.0, 1.0), director: Any = None, every: int | None = None
) -> OrientationalOrder:
    """Polar and nematic order of bodies: vector p and tensor Q with errors, and P₁, P₂ along the director.

    of        a function of a State that returns directions (n, 3), or (n, 2) in the plane; by default those of a body axis
    axis      that axis, fixed in the body
    director  a fixed direction for P₁ and P₂; without it |p| and the largest eigenvalue of Q, configuration by configuration
    """
    return OrientationalOrder(of, _direction("axis", axis), () if director is None else _direction("director", director), every=every)


def _direction(name: str, value: Any) -> tuple[float, ...]:
    array = np.asarray(value, float)
    size = float(np.sqrt(np.sum(array**2))) if array.ndim == 1 else 0.0  # the norm of NumPy asks BLAS
    if array.ndim != 1 or len(array) not in (2, 3) or not 0 < size < np.inf:
        raise DomainError(f"{name} must be a direction such as (0, 0, 1), got {value!r}.")
    return tuple((array / size).tolist())
