"""Parameter sweeps: the same program for every value, the values as extra axes of the result.

    simulate(..., sweep={"temperature": [0.5, 1.0, 2.0]})      →      result.energy.mean  with axes (temperature, time)

A name is a key of the system's parameters, or a number the scheme itself holds. Several names span a grid. All values see the same noise, so
differences between them are differences of the system. Starts are made for each value: where a mass is swept, momenta follow from the velocity that
was given, or are drawn for that mass; a momentum that was given stays.
"""

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import shown
from bismut.errors import DomainError, nearest
from bismut.mechanics import Scheme

# Names of axes and arrays of reports, beside which a swept parameter stands as a further axis.
AXES = frozenset(
    [
        *("time", "mean", "std", "stderr", "min", "max", "count", "trajectory", "lag", "level", "crossing", "block", "value", "missed"),
        *("below", "above", "edges", "density", "counts", "quantile", "covariance", "correlation", "integrated_time", "effective_samples"),
    ]
)
_STATES = re.compile(r"[qp]\d*")  # of last states and paths


def grid(sweep: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
    """The swept values by name, each along a first axis."""
    axes = {}
    for name, listed in (sweep or {}).items():
        if not isinstance(name, str) or not name or "/" in name:
            raise DomainError(f"sweep must name parameters, {{'k': [1.0, 2.0]}}, got the name {name!r}.")
        try:
            values = axes[name] = np.asarray(listed)
        except ValueError:  # lists of different lengths
            raise DomainError(f"sweep[{name!r}] must be a list of one or more numbers, got {shown(listed)}.") from None
        if name in AXES or _STATES.fullmatch(name):
            raise DomainError(f"A parameter called {name!r} cannot be swept: results have an axis or an array of that name. Rename it.")
        if values.ndim != 1 or not len(values):
            raise DomainError(f"sweep[{name!r}] must be a list of one or more numbers, got an array of shape {values.shape}.")
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise DomainError(f"sweep[{name!r}] must hold finite numbers, got {shown(listed)}.")
    return axes


def variants(scheme: Scheme, axes: dict[str, np.ndarray]) -> list[Scheme]:
    """The scheme with each combination of values, the last name varying fastest."""
    return [with_parameters(scheme, dict(zip(axes, values, strict=True))) for values in product(*axes.values())]


def with_parameters(scheme: Scheme, values: Mapping[str, Any]) -> Scheme:
    """The scheme with other values of some of its parameters, {"weight": 2.0}: keys of the system's parameters, or numbers the scheme itself holds,
    such as the temperature of a bath. What was compiled for the scheme serves the new one too."""
    for name, value in values.items():
        scheme = _with(scheme, name, value)
    return scheme


def _with(scheme: Scheme, name: str, value) -> Scheme:
    parameters = scheme.system.parameters
    if isinstance(parameters, Mapping) and name in parameters:
        integral = jnp.issubdtype(jnp.result_type(parameters[name]), jnp.integer) and isinstance(value, np.integer)  # integers stay integers
        kind = jnp.result_type(parameters[name]) if integral else scheme.system.dtype
        number = jnp.broadcast_to(jnp.asarray(value, kind), jnp.shape(parameters[name]))
        return eqx.tree_at(lambda s: s.system.parameters[name], scheme, number)
    number = _number(scheme, name)
    if number is not None:
        return eqx.tree_at(lambda s: _part(s, name), scheme, jnp.broadcast_to(jnp.asarray(value, scheme.system.dtype), jnp.shape(number)))
    known = list(parameters_of(scheme))
    needed = "A system has those given as parameters={...} that its functions ask for."
    hint = ' Friction is swept as a factor on it: schedule=lambda t, parameters: parameters["c"].' if name in ("friction", "rate") else ""
    raise DomainError(f"There is no parameter {name!r} to sweep. {nearest(name, known)} {needed}{hint}")


def parameters_of(scheme: Scheme) -> dict[str, Any]:
    """What `with_parameters` can change, by name."""
    parameters = scheme.system.parameters
    own = {name: _number(scheme, name) for name in vars(scheme)}
    return {name: number for name, number in own.items() if number is not None} | (dict(parameters) if isinstance(parameters, Mapping) else {})


def _number(scheme: Scheme, name: str) -> Any:
    """A number that the scheme holds under this name."""
    part = _part(scheme, name)
    return part if isinstance(part, jax.Array | np.ndarray | float) else None


def _part(scheme: Scheme, name: str) -> Any:
    """What the scheme holds under a name, itself or as the `value` of a part: by structure alone, which is all that `tree_at` shows."""
    part: Any = getattr(scheme, name, None)
    return getattr(part, "value", part) if isinstance(part, eqx.Module) else part  # leaves are wrapped by `tree_at`, in a `value`, too
