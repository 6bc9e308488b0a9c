"""Which function of the user has no forward derivative.

A function with a jax.custom_vjp has a gradient and nothing else: whatever needs the derivative of a step, or a second one of U, cannot be measured.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bismut.errors import BismutError
from bismut.mechanics import System

_SENTENCE = "a function has a jax.custom_vjp, and so no forward derivative; give it its derivative with jax.custom_jvp instead"


def without_forward(system: System) -> str | None:
    """The sentence that names a function of the system which has a gradient and no forward derivative; None if there is none."""
    space, dtype = system.space, system.dtype

    def twice():
        q, z = space.origin(dtype), space.zero(dtype)
        energy = (lambda q: system.hamiltonian(q, z)) if system.in_phase_space else (lambda q: system.lagrangian(q, z))
        along = lambda s: energy(space.move(q, z, s))
        rate = lambda s: jax.jvp(along, (s,), (s,))[1]
        s = jnp.ones((), dtype)
        return jax.jvp(rate, (s,), (s,))

    try:
        jax.eval_shape(twice)
    except Exception as problem:  # anything else is told by those who meet it
        return reason(problem)
    return None


def reason(problem: Exception) -> str | None:
    """Why something could not be measured, if it is for a function without a forward derivative."""
    if "custom_vjp" not in str(problem) and "custom_lin" not in str(problem):
        return None
    return str(problem) if isinstance(problem, BismutError) else _SENTENCE
