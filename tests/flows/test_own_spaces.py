"""`mechanical` on a space of two verbs moves as its Lagrangian does, also where the frame of velocities does not commute."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.flows import flow
from bismut.mechanics import Scheme
from tests.spaces.own import HalfPlane, Heisenberg, HeisenbergInPieces, Rotations

from .catalogue import PLAIN, once

slow = lambda *case: pytest.param(*case, marks=pytest.mark.slow)
MASS = jnp.array([1.0, 2.0, 2.5])
BATHS: dict[str, Callable] = {
    str(splitting): partial(bm.Langevin, temperature=0.7, friction=0.8, splitting=splitting)
    for splitting in (bm.BAOAB, bm.ABOBA, bm.OBABO, bm.GLA(bm.Verlet), bm.Metropolised())
}


def walk(scheme: Scheme, state: bm.State, h: float, steps: int, seed: int = 3) -> bm.State:
    """The state after some steps, all of them solved."""
    step = once(flow(scheme).advance)
    for k, normals in enumerate(np.random.default_rng(seed).normal(size=(steps, scheme.channels))):
        state, solve = step(state, h, np.sqrt(h) * normals, h * k)
        assert bool(solve.converged)
    return jax.tree.map(np.asarray, state)


def close(a, b, atol):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=0, atol=atol), a, b)


@pytest.mark.parametrize("name", [name if name in ("euler left", "OBABO") else slow(name) for name in (*PLAIN, *BATHS)])
def test_rotations_of_two_verbs_are_rotations(name):
    """A driven heavy top on SO(3) of two verbs is the one on SO3(), to round-off, whatever the scheme."""
    noise = lambda R: jnp.array([0.5 * R[2, 2], 0.3 * R[2, 1] ** 2])
    build = lambda space: bm.mechanical(space, mass=MASS, potential=lambda R: 3.0 * R[2, 2] + 0.4 * R[2, 0], noise=None if name in BATHS else noise)
    ends = []
    for space in (Rotations(), bm.SO3()):
        scheme = (PLAIN | BATHS)[name](build(space))
        ends.append(walk(scheme, bm.State(jnp.eye(3), jnp.array([0.9, -0.6, 1.5])), 0.1, 6))
    close(ends[0], ends[1], 1e-12)
    assert np.abs(ends[0].p - [0.9, -0.6, 1.5]).max() > 0.1


def potential(q):
    return 0.3 * jnp.sin(q[0]) * q[1] ** 2


@pytest.mark.parametrize("name", ["euler right", *map(slow, ("euler left", "midpoint", "verlet"))])
@pytest.mark.parametrize("space", [slow(Heisenberg()), HalfPlane()], ids=repr)
def test_the_lagrangian_decides(space, name):
    """What is known of L = T − U changes how a step is solved, and not where it leads."""
    mass, n = MASS[: space.dim], space.dim
    noise = lambda q: jnp.array([0.4 * q[0] * q[1]])
    structured = bm.mechanical(space, mass=mass, potential=potential, noise=noise)
    plain = bm.System(space, lambda q, v: 0.5 * v @ (mass * v) - potential(q), noise)
    start = bm.State(jnp.array([0.3, 1.2, 0.5])[:n], jnp.array([0.9, -0.6, 1.5])[:n])
    close(*(walk(PLAIN[name](system), start, 0.1, 4) for system in (structured, plain)), 1e-12)


@pytest.mark.parametrize("name", ["verlet", *map(slow, ("euler left", "euler right", "midpoint", "BAOAB"))])
def test_geodesics_of_the_hyperbolic_plane(name):
    """From (0, 1) with speed (1, 0) a free particle is at (tanh t, 1/cosh t): the error falls with h²."""
    system = bm.mechanical(HalfPlane())
    scheme = PLAIN[name](system) if name in PLAIN else bm.Langevin(system, 1.0, 0.0)
    exact = np.array([np.tanh(2.0), 1 / np.cosh(2.0)])
    start = bm.State(jnp.array([0.0, 1.0]), jnp.array([1.0, 0.0]))
    errors = [np.abs(walk(scheme, start, 2.0 / n, n).q - exact).max() for n in (20, 40)]
    assert errors[0] < 1e-3
    assert 3.6 < errors[0] / errors[1] < 4.4


@pytest.mark.parametrize("name", ["midpoint", *map(slow, ("euler left", "euler right", "verlet"))])
def test_free_motion_on_the_heisenberg_group(name):
    """p_z stays and (p_x, p_y) turns at the rate p_z, so that (x, y) runs on a circle: the error falls with h²."""
    scheme, c, t = PLAIN[name](bm.mechanical(Heisenberg())), 1.5, 2.0
    start = bm.State(jnp.zeros(3), jnp.array([1.0, 0.0, c]))
    x, y, z = np.sin(c * t) / c, (1 - np.cos(c * t)) / c, c * t + (t - np.sin(c * t) / c) / (2 * c)
    ends = [walk(scheme, start, t / n, n) for n in (20, 40)]
    errors = [np.abs(end.q - [x, y, z]).max() for end in ends]
    assert errors[0] < 2e-2
    assert 3.6 < errors[0] / errors[1] < 4.4
    close([end.p[2] for end in ends], [c, c], 1e-13)


@pytest.mark.parametrize("name", [slow("verlet"), "BAOAB"])
def test_arrays_that_the_ends_couple(name):
    """A velocity in two arrays is the same velocity, alone and as a factor of a product."""

    def final(space, q, p):
        system = bm.mechanical(space)
        return walk(PLAIN[name](system) if name in PLAIN else bm.Langevin(system, 1.0, 0.0), bm.State(q, p), 0.2, 5)

    plane, height, p, up = jnp.array([0.3, 0.2]), jnp.array([0.1]), jnp.array([1.0, -0.5]), jnp.array([2.0])
    one = final(Heisenberg(), jnp.concatenate([plane, height]), jnp.concatenate([p, up]))
    two = final(HeisenbergInPieces(), (plane, height), (p, up))
    close(np.concatenate(two.q), one.q, 1e-13)
    close(np.concatenate(two.p), one.p, 1e-13)
    product = final(HeisenbergInPieces() * bm.Euclidean(1), ((plane, height), height), ((p, up), up))
    close(product.q[0], two.q, 1e-13)
    several = final(HeisenbergInPieces() ** 2, *(jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), tree) for tree in ((plane, height), (p, up))))
    close(jax.tree.map(lambda leaf: leaf[1], several.q), two.q, 1e-13)


def test_check_space_sees_free_motion():
    """A space that claims to be flat, so that p stays, is not taken for the half plane it moves on: the error of a step falls with h only."""

    class Straight(HalfPlane):
        def ends(self, q0, q1, x, a):
            del q0, q1, x
            return jax.tree.map(jnp.negative, a), a

    wrong = bm.check_space(Straight())["free motion"]
    assert wrong.verdict == "fail"
    assert 0.4 < wrong.measured < 0.6
