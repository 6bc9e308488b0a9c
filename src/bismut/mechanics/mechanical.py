"""Systems of the form L = ½⟨v, M v⟩ − U(q).

What is gained over a bare Lagrangian: the kinetic energy is known to fall into cells (single coordinates, single bodies), so explicit and per-body
solves follow, and the mass is at hand for heat baths.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from bismut.mechanics.coefficients import coefficients
from bismut.mechanics.kinetic import quadratic
from bismut.mechanics.law import law
from bismut.mechanics.symmetry import Symmetry
from bismut.mechanics.system import System
from bismut.precision import real_type
from bismut.spaces import Space


def mechanical(
    space: Space,
    *,
    mass: Any = 1.0,
    potential: Callable | None = None,
    noise: Callable | None = None,
    force: Callable | None = None,
    constraint: Callable | None = None,
    symmetries: Mapping[str, Symmetry] | None = None,
    parameters: Any = None,
    precision: str = "float64",
) -> System:
    """L = ½⟨v, M v⟩ − U(q), perhaps with constraints g(q) = 0.

    mass: for each array of the velocity (a tuple on a product) a number, an array of the velocity's shape (or one that broadcasts to it), or
    symmetric matrices, of the velocity's shape with its last axis repeated: (n, n) for one body, (K, n, n) for K; or a function mass(q) that returns
    the whole matrix.
    potential: U(q), one number. noise, force, constraint, symmetries, parameters, precision: as for System.
    """
    dtype = real_type(precision)
    # A zero of the dtype, not of Python, so that a system without a potential still has a derivative of the right type.
    bare = potential if potential is not None else (lambda q: jnp.zeros((), dtype))
    U = law("potential", bare, ("q",))
    assert U is not None
    if callable(mass):
        inertia = law("mass", mass, ("q",))
        assert inertia is not None

        cells = None

        def of_matrix(q, v, t, parameters):
            x = space.flatten(v)
            return 0.5 * x @ inertia(q, t=t, parameters=parameters) @ x

        kinetic = of_matrix
    else:
        masses, cells = _masses(space, mass, dtype)
        kinetic = quadratic(space, masses)
    T = law("kinetic", kinetic, ("q", "v"))
    assert T is not None

    def lagrangian(q, v, t, parameters):
        return T(q, v, t=t, parameters=parameters) - U(q, t=t, parameters=parameters)

    return System(
        space,
        lagrangian,
        noise,
        force,
        symmetries,
        constraint=constraint,
        parameters=parameters,
        potential=bare,
        kinetic=kinetic,
        cells=cells,
        precision=precision,
    )


def _masses(space: Space, mass, dtype) -> tuple[list, tuple[int, ...]]:
    """The mass of each array of the velocity, and the sizes of the cells it couples."""
    leaves = jax.tree.leaves(jax.eval_shape(space.zero))
    masses = coefficients(space, mass, "mass", dtype, positive=True)
    cells = [leaf.shape[-1] if one.matrix else cell for one, leaf, cell in zip(masses, leaves, space.cells(), strict=True)]
    return [one.value for one in masses], tuple(cells)
