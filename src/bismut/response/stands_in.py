"""Where parameters stand, read off the programs of the system's functions.

Statistical mechanics has a formula for parameters of the potential and of kT; of the mass where nothing is constrained; of a constraint it has none
that is used here, because the surface itself moves.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from bismut.programs.dependence import depends
from bismut.response.parameters import Parameters


def in_potential(scheme: Any, parameters: Parameters) -> bool:
    """Whether U(q) can depend on them."""
    return _depends(scheme, parameters, lambda new, q, v, t: new.system.potential(q, t))


def in_mass(scheme: Any, parameters: Parameters) -> bool:
    """Whether ∂L/∂v can depend on them."""
    return _depends(scheme, parameters, lambda new, q, v, t: new.system.momentum(q, v, t))


def in_constraint(scheme: Any, parameters: Parameters) -> bool:
    """Whether g(q) can depend on them."""
    return bool(scheme.system.constraints) and _depends(scheme, parameters, lambda new, q, v, t: new.system.constraint(q, t))


def in_temperature(scheme: Any, parameters: Parameters) -> bool:
    """Whether kT can depend on them."""
    return _depends(scheme, parameters, lambda new, q, v, t: new.temperature(t, new.system.parameters))


def _depends(scheme: Any, parameters: Parameters, function: Any) -> bool:
    system = scheme.system
    q, v = jax.eval_shape(lambda: (system.space.origin(system.dtype), system.space.zero(system.dtype)))
    time = jnp.zeros((), system.dtype)
    return depends(lambda theta, q, v: function(parameters.put(scheme, theta), q, v, time), parameters.vector(scheme), q, v)
