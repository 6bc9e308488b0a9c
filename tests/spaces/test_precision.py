"""A verb returns what it was given: float32 points and velocities stay float32, float64 ones float64, and nothing is cast in silence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.errors import DomainError
from bismut.spaces import SE3, SO2, SO3, pair

from .catalogue import everywhere

precisions = pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=["float32", "float64"])

VERBS = {
    "tau": lambda s, g, x: s.tau(x),
    "tau_inv": lambda s, g, x: s.tau_inv(g),
    "dtau_inv": lambda s, g, x: s.dtau_inv(x, x),
    "dtau_inv_adjoint": lambda s, g, x: s.dtau_inv_adjoint(x, x),
    "multiply": lambda s, g, x: s.multiply(g, g),
    "inverse": lambda s, g, x: s.inverse(g),
    "Ad": lambda s, g, x: s.Ad(g, x),
    "Ad_star": lambda s, g, x: s.Ad_star(g, x),
    "bracket": lambda s, g, x: s.bracket(x, x),
    "ad_star": lambda s, g, x: s.ad_star(x, x),
    "move": lambda s, g, x: s.move(g, x, 0.1),
    "subtract": lambda s, g, x: s.subtract(g, g),
    "ends": lambda s, g, x: s.ends(g, g, x, x),
    "project": lambda s, g, x: s.project(g),
    "flatten": lambda s, g, x: s.flatten(x),
    "unflatten": lambda s, g, x: s.unflatten(s.flatten(x)),
    "pair": lambda s, g, x: pair(x, x),
}


@everywhere
@precisions
def test_every_verb_keeps_the_precision(space, dtype):
    cast = {
        name: {leaf.dtype.name for leaf in jax.tree.leaves(jax.eval_shape(lambda g, x, verb=verb: verb(space, g, x), space.origin(dtype), space.zero(dtype)))}
        for name, verb in VERBS.items()
    }
    assert {name: got for name, got in cast.items() if got != {np.dtype(dtype).name}} == {}


@precisions
def test_conversions_keep_the_precision(dtype):
    x, R, q = jnp.ones(3, dtype), jnp.eye(3, dtype=dtype), jnp.ones(4, dtype)
    space = SO3()
    for value in (space.from_quaternion(q), space.quaternion(R), space.from_rotation_vector(x), space.rotation_vector(R)):
        assert value.dtype == dtype
    assert space.from_euler_angles(x).dtype == dtype
    assert space.euler_angles(R).dtype == dtype
    assert SE3().matrix((R, x)).dtype == dtype


@pytest.mark.parametrize("space", [SO2(), SO3()], ids=str)
@precisions
def test_a_point_far_off_the_group_is_refused_in_every_precision(space, dtype):
    with pytest.raises(DomainError, match="lies off"):
        space.check(np.asarray(1.1 * space.origin(dtype)))
