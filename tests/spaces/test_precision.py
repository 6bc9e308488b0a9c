"""A verb returns the precision it was given: single stays single, so that nothing is cast in silence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.errors import DomainError
from bismut.spaces import SE3, SO2, SO3, pair

from .catalogue import BATCH, everywhere, points

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


def dtypes(function, *arguments):
    return {leaf.dtype.name for leaf in jax.tree.leaves(jax.eval_shape(function, *arguments))}


@everywhere
def test_every_verb_keeps_single_precision(space):
    g, x = space.origin(jnp.float32), space.zero(jnp.float32)
    cast = {name: dtypes(lambda g, x, verb=verb: verb(space, g, x), g, x) for name, verb in VERBS.items()}
    assert {name: got for name, got in cast.items() if got != {"float32"}} == {}


CONVERSIONS = {
    "from_quaternion": (SO3().from_quaternion, (4,)),
    "quaternion": (SO3().quaternion, (3, 3)),
    "from_rotation_vector": (SO3().from_rotation_vector, (3,)),
    "rotation_vector": (SO3().rotation_vector, (3, 3)),
    "from_euler_angles": (SO3().from_euler_angles, (3,)),
    "euler_angles": (SO3().euler_angles, (3, 3)),
    "from_matrix": (SE3().from_matrix, (4, 4)),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_keep_single_precision(name):
    convert, shape = CONVERSIONS[name]
    assert dtypes(convert, jax.ShapeDtypeStruct(shape, jnp.float32)) == {"float32"}


@pytest.mark.parametrize("space", [SO2(), SO3()], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_point_far_off_the_group_is_refused_in_every_precision(space, dtype):
    with pytest.raises(DomainError, match="lies off"):
        space.check(np.asarray(1.1 * space.origin(dtype)))


@pytest.mark.parametrize("space", [SO2(), SO3(), SE3()], ids=str)
def test_rounding_a_point_to_single_precision_keeps_it_on_the_group(space):
    rounded = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), points(space, 3)[0])
    assert space.check(rounded) == (BATCH,)
