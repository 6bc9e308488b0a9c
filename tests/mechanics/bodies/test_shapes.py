"""A body made of points: its mass, centre and inertia, and the way to principal axes and back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import bismut as bm
from bismut.errors import DomainError, ShapeError
from bismut.flows import VariationalFlow
from bismut.programs.evaluation import evaluate


def cloud(seed: int, n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [3.0, -1.0, 2.0], generator.uniform(0.5, 2, n)


@given(st.integers(0, 10**6))
def test_the_inertia_is_the_sum_over_points(seed):
    y, m = cloud(seed)
    shape = bm.body(y, m)
    c = sum(mass * point for mass, point in zip(m, y, strict=True)) / m.sum()
    inertia = sum(mass * ((z @ z) * np.eye(3) - np.outer(z, z)) for mass, z in zip(m, y - c, strict=True))
    np.testing.assert_allclose([shape.mass, *shape.centre], [m.sum(), *c], rtol=1e-12)
    np.testing.assert_allclose(shape.inertia, inertia, rtol=1e-11, atol=1e-11)


@given(st.integers(0, 10**6))
def test_principal_axes_are_a_rotation_in_which_the_inertia_is_diagonal(seed):
    y, m = cloud(seed)
    shape = bm.body(y, m)
    np.testing.assert_allclose(shape.axes.T @ shape.axes, np.eye(3), atol=1e-13)
    assert np.linalg.det(shape.axes) > 0
    np.testing.assert_allclose(bm.body(shape.points, m).inertia, np.diag(shape.moments), atol=1e-11 * shape.moments.max())
    assert (shape.moments.sum() - 2 * shape.moments > 0).all()


@given(st.integers(0, 10**6))
def test_to_principal_axes_and_back(seed):
    """A cloud turned by Q lies where the body with orientation R = Q A has its points."""
    y, m = cloud(seed)
    shape, Q = bm.body(y, m), Rotation.random(random_state=seed).as_matrix()
    R = shape.principal(Q)
    np.testing.assert_allclose(shape.as_given(R), Q, atol=1e-14)
    np.testing.assert_allclose(bm.points_of(np.array([1.0, 2.0, 3.0]), R, shape.points), (y - shape.centre) @ Q.T + [1.0, 2.0, 3.0], atol=1e-12)


def test_the_order_and_axes_of_a_body_that_lies_in_principal_axes_stay():
    """Also where two or three moments are equal."""
    corners = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], float)
    for edges in ((3.0, 1.0, 2.0), (1.0, 1.0, 2.0), (1.0, 1.0, 1.0)):
        shape = bm.body(corners * edges, 2.0)
        np.testing.assert_array_equal(shape.axes, np.eye(3))
        squares = np.square(edges)
        np.testing.assert_allclose(shape.moments, 16 * (squares.sum() - squares))


def test_bodies_with_different_numbers_of_points_stand_in_one_array():
    shapes = [bm.body(*cloud(k, n)) for k, n in enumerate((4, 7, 5))]
    several = bm.stack_bodies(shapes)
    assert several.points.shape == (3, 7, 3)
    np.testing.assert_allclose(several.masses.sum(1), several.mass)
    np.testing.assert_allclose(several.inertia, [shape.inertia for shape in shapes])
    system = bm.rigid_bodies(mass=several.mass, inertia=several.moments)
    x, R = system.space.random(jax.random.key(0))
    places = bm.points_of(x, R, several.points)
    assert places.shape == (3, 7, 3)
    np.testing.assert_allclose(jnp.einsum("kn,kni->ki", several.masses, places) / several.mass[:, None], x, atol=1e-13)


def test_the_kinetic_energy_is_that_of_the_points():
    """In principal axes and with the full matrix, for the same motion."""
    y, m = cloud(3)
    shape, Q = bm.body(y, m), Rotation.random(random_state=3).as_matrix()
    v, w = np.array([0.3, -0.2, 0.5]), np.array([1.0, 0.4, -0.7])  # w in space
    points = sum(0.5 * mass * np.sum((v + np.cross(w, z)) ** 2) for mass, z in zip(m, (y - shape.centre) @ Q.T, strict=True))
    for inertia, R in ((shape.moments, shape.principal(Q)), (shape.inertia, jnp.asarray(Q))):
        system = bm.rigid_bodies(mass=[shape.mass], inertia=[inertia])
        q = (jnp.zeros((1, 3)), R[None])
        p = system.momentum(q, (jnp.asarray(v)[None], (R.T @ w)[None]))
        np.testing.assert_allclose(system.energy(bm.State(q, p)), points, rtol=1e-12)


def steps(system: bm.System, start_of, count: int = 20) -> tuple[bm.State, bool]:
    """A run of Verlet from a start, and whether every step was solved."""
    scheme = bm.Verlet(system)

    def one(state, _):
        state, solve = VariationalFlow(scheme).advance(state, 0.05, jnp.zeros(system.channels), 0.0)
        return state, solve.converged & (solve.residual < 1e-13)

    state, fine = evaluate(lambda state: jax.lax.scan(one, state, length=count), start_of(scheme))
    return state, bool(fine.all())


def test_a_body_moves_alike_in_principal_axes_and_in_others():
    """The scheme does not know in which axes a body is described: its points go the same way to round-off."""
    y, m = cloud(3)
    shape, Q, w = bm.body(y, m), Rotation.random(random_state=3).as_matrix(), np.array([1.0, 0.4, -0.7])
    ends = []
    for inertia, R, z in ((shape.moments, np.asarray(shape.principal(Q)), shape.points), (shape.inertia, Q, y - shape.centre)):
        # A pull on one point of the body, which is the same point in both.
        pull = lambda x, R, z=z: bm.points_of(x, R, z)[0, 0] @ jnp.array([1.0, 2.0, -0.5])
        system = bm.rigid_bodies(mass=[shape.mass], inertia=[inertia], potential=pull)
        spun = lambda scheme, R=R: scheme.start((np.zeros((1, 3)), R[None]), velocity=(np.ones((1, 3)), (R.T @ w)[None]))
        state, fine = steps(system, spun)
        assert fine
        ends.append(bm.points_of(*state.q, z))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)


def test_spherical_symmetric_flat_and_thin_tops_are_solved_alike():
    """Moments (1, 1, 1), (1, 1, ½), (1, 1, 2), (1, 1, 10⁻³) in a vertical field: every step is solved, vertical angular momentum stays."""
    inertia = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.5], [1.0, 1.0, 2.0], [1.0, 1.0, 1e-3]])
    field = bm.uniform_field((0.0, 0.0, 2.0), (0.3, 0.0, 1.0))
    system = bm.rigid_bodies(mass=np.ones(4), inertia=inertia, potential=field, symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))})
    begin = lambda scheme: scheme.start(system.space.random(jax.random.key(1)), velocity=(np.zeros((4, 3)), np.full((4, 3), 0.7)))
    state, fine = steps(system, begin, 60)
    assert fine
    before = system.momentum_map("vertical", begin(bm.Verlet(system)))
    np.testing.assert_allclose(system.momentum_map("vertical", state), before, rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: bm.body(np.ones((4, 2))), ShapeError, "points must have shape"),
        (lambda: bm.body(np.ones((4, 3)), [1.0, 2.0]), ShapeError, "masses must be one number or"),
        (lambda: bm.body(np.ones((2, 3)), [1.0, -2.0]), DomainError, "masses ≥ 0"),
        (lambda: bm.stack_bodies([]), ShapeError, "list of single bodies"),
        (lambda: bm.principal_axes(np.arange(9.0).reshape(3, 3)), ShapeError, "symmetric"),
    ],
)
def test_clouds_that_are_no_bodies_are_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()


def linear():
    rod = bm.body([[0, 0, -1], [0, 0, 1], [0, 0, 0.5]])
    return bm.rigid_bodies(mass=[rod.mass], inertia=[rod.moments])


def tilted():
    rod = bm.body([[-1, -2, -3], [1, 2, 3.0], [2, 4, 6]])
    return bm.rigid_bodies(mass=[rod.mass], inertia=[rod.inertia])


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (linear, DomainError, "body 0 has .* linear molecule .* constraint"),
        (tilted, DomainError, "give the thin axis a small moment"),
        (lambda: bm.rigid_bodies(mass=[1.0, 1.0], inertia=[[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]]), DomainError, "body 1 has"),
        (lambda: bm.rigid_bodies(mass=[1.0], inertia=np.eye(3)[None] + np.eye(3, k=1)), DomainError, "symmetric"),
        (lambda: bm.rigid_bodies(mass=[0.0], inertia=[[1.0, 1.0, 1.0]]), DomainError, "positive masses"),
        (lambda: bm.rigid_bodies(mass=1.0, inertia=[[1.0, 1.0, 1.0]]), ShapeError, "mass \\(K,\\)"),
        (lambda: bm.rigid_bodies(mass=[1.0], inertia=[[1.0, 1.0, 5.0]]), DomainError, "body 0 has .* no distribution"),
    ],
)
def test_inertias_that_no_body_has_are_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()
