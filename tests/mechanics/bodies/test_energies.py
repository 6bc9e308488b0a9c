"""Ready-made energies: their value is that of the formula summed pair by pair in NumPy, and their derivative that of finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError, ShapeError
from bismut.programs.evaluation import evaluate
from tests.mechanics.bodies.configurations import moved, nudged, scattered

COUNT = 5
generator = np.random.default_rng(7)
MOMENTS, DIAMETERS, MASSES = generator.normal(size=(COUNT, 3)), generator.uniform(0.6, 1.3, COUNT), generator.uniform(1, 2, COUNT)
AXES = generator.normal(size=(COUNT, 3))
ENDS, PLACES = np.array([[0, 3], [4, 1], [2, 3]]), generator.normal(size=(3, 2, 3))
STIFFNESS, LENGTHS = np.array([1.0, 2.0, 0.7]), np.array([0.0, 0.9, 2.0])
FIELD = np.array([0.3, -0.5, 1.1])


def pairs(one):
    """Σ_{i<j} by two loops."""
    return lambda x, R: sum(one(i, j, x[j] - x[i], R[i], R[j]) for i in range(len(x)) for j in range(i + 1, len(x)))


def dipole_pair(i, j, r, A, B):
    m, n, d = A @ MOMENTS[i], B @ MOMENTS[j], np.linalg.norm(r)
    return 0.7 * (m @ n / d**3 - 3 * (m @ r) * (n @ r) / d**5)


def gay_berne_pair(i, j, r, A, B, kappa=2.2, ratio=4.0, mu=1.5, nu=2.5, sigma0=0.8, epsilon0=1.3):
    d = np.linalg.norm(r)
    u, w, n = A @ AXES[i] / np.linalg.norm(AXES[i]), B @ AXES[j] / np.linalg.norm(AXES[j]), r / d
    chi, well = (kappa**2 - 1) / (kappa**2 + 1), (ratio ** (1 / mu) - 1) / (ratio ** (1 / mu) + 1)
    plus, minus = (n @ u + n @ w) ** 2, (n @ u - n @ w) ** 2
    g = lambda c: 1 - c / 2 * (plus / (1 + c * (u @ w)) + minus / (1 - c * (u @ w)))
    rho = (d - sigma0 * g(chi) ** -0.5 + sigma0) / sigma0
    return 4 * epsilon0 * (1 - (chi * (u @ w)) ** 2) ** (-nu / 2) * g(well) ** mu * (rho**-12 - rho**-6)


def spring_energy(x, R):
    total = 0.0
    for (i, j), (a, b), k, l in zip(ENDS, PLACES, STIFFNESS, LENGTHS, strict=True):
        total += 0.5 * k * (np.linalg.norm(x[i] + R[i] @ a - x[j] - R[j] @ b) - l) ** 2
    return total


def own_pair(a, b):
    """Nothing is symmetric here: which of the two comes first matters."""
    return a.data[0] * (a.R[:, 0] @ b.R[:, 1]) * (b.x - a.x) @ b.data[1] / (1 + (a.x - b.x) @ (a.x - b.x))


DATA = (MASSES, MOMENTS)
CASES = {
    "dipoles": (bm.dipoles(MOMENTS, 0.7), pairs(dipole_pair)),
    "spheres": (bm.soft_spheres(DIAMETERS, 0.9, 12), pairs(lambda i, j, r, *_: 0.9 * ((DIAMETERS[i] + DIAMETERS[j]) / 2 / np.linalg.norm(r)) ** 12)),
    "odd spheres": (bm.soft_spheres(1.1, 0.9, 7), pairs(lambda i, j, r, *_: 0.9 * (1.1 / np.linalg.norm(r)) ** 7)),
    "elongated": (bm.gay_berne(2.2, 4.0, 0.8, 1.3, 1.5, 2.5, AXES), pairs(gay_berne_pair)),
    "springs": (bm.springs(ENDS, STIFFNESS, LENGTHS, PLACES), spring_energy),
    "field": (bm.uniform_field(FIELD, MOMENTS), lambda x, R: -sum(FIELD @ A @ m for A, m in zip(R, MOMENTS, strict=True))),
    "gravity": (bm.gravity(MASSES, FIELD), lambda x, R: -sum(m * FIELD @ y for m, y in zip(MASSES, x, strict=True))),
    "trap": (bm.harmonic_trap((1.0, 2.0, 0.5), FIELD), lambda x, R: 0.5 * np.sum([1.0, 2.0, 0.5] * (x - FIELD) ** 2)),
    "box": (bm.soft_box((3.0, 2.0, 4.0), 0.6, 8, FIELD), lambda x, R: 0.6 * np.sum(((x - FIELD) / [3.0, 2.0, 4.0]) ** 8)),
    "own pair": (
        bm.pair_potential(own_pair, DATA),
        pairs(lambda i, j, r, A, B: MASSES[i] * (A[:, 0] @ B[:, 1]) * r @ MOMENTS[j] / (1 + r @ r)),
    ),
}
CASES["sum"] = (
    2.0 * (CASES["dipoles"][0] + CASES["springs"][0]) + (lambda x, R: R[0, 1, 2] * x[3, 0]),
    lambda x, R: 2 * (CASES["dipoles"][1](x, R) + spring_energy(x, R)) + R[0, 1, 2] * x[3, 0],
)
OUTSIDE = ("field", "gravity", "trap", "box", "sum")  # not of the pairs alone


@pytest.mark.parametrize("name", CASES)
def test_an_energy_is_its_formula(name):
    energy, formula = CASES[name]
    q = scattered(COUNT)
    np.testing.assert_allclose(energy(*map(jnp.asarray, q)), formula(*q), rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_the_finite_difference(name):
    """Central differences of the NumPy formula, step 3e−6: truncation and round-off stay below 1e−8 of the largest slope."""
    energy, formula = CASES[name]
    q, step = scattered(COUNT), 3e-6
    space = (bm.Euclidean(3) * bm.SO3()) ** COUNT
    slopes = evaluate(jax.grad(lambda e: energy(*space.nudge(tuple(map(jnp.asarray, q)), e))), space.zero())
    for body, axis in ((0, 0), (1, 1), (2, 2), (3, 0), (4, 1)):
        for slope, there, back in zip(slopes, nudged(q, body, axis, step), nudged(q, body, axis, -step), strict=True):
            scale = max(1.0, float(jnp.max(jnp.abs(slope))))
            assert abs(slope[body, axis] - (formula(*there) - formula(*back)) / (2 * step)) < 1e-8 * scale


@pytest.mark.parametrize("name", [name for name in CASES if name not in OUTSIDE and name != "own pair"])
def test_a_rigid_motion_of_everything_changes_no_pair_energy(name):
    q = scattered(COUNT)
    np.testing.assert_allclose(CASES[name][0](*map(jnp.asarray, moved(q))), CASES[name][0](*map(jnp.asarray, q)), rtol=1e-12)


def along(direction, distance):
    """Two bodies turned alike, one from the other in a direction."""
    first = np.array([0.1, 0.2, 0.3])
    return jnp.stack([first, first + distance * np.asarray(direction)]), jnp.stack([np.eye(3), np.eye(3)])


def test_a_pair_head_to_tail_has_energy_minus_two():
    """−2m²/r³ head to tail, +m²/r³ side by side."""
    energy = bm.dipoles((0.0, 0.0, 1.7))
    np.testing.assert_allclose(energy(*along((0, 0, 1), 1.3)), -2 * 1.7**2 / 1.3**3, rtol=1e-14)
    np.testing.assert_allclose(energy(*along((0, 1, 0), 1.3)), 1.7**2 / 1.3**3, rtol=1e-14)


def test_round_gay_berne_bodies_are_lennard_jones_particles():
    x, R = scattered(4)
    energy = bm.gay_berne(elongation=1.0, well_ratio=1.0, breadth=1.2, depth=0.7)
    r = [np.linalg.norm(x[j] - x[i]) for i in range(4) for j in range(i + 1, 4)]
    np.testing.assert_allclose(energy(jnp.asarray(x), jnp.asarray(R)), sum(2.8 * ((1.2 / d) ** 12 - (1.2 / d) ** 6) for d in r), rtol=1e-13)


def test_the_wells_of_gay_berne_have_the_ratio_that_was_asked_for():
    """Parallel bodies: contact at σ₀ side by side and κ σ₀ end to end; the wells lie 2^(1/6) σ₀ − σ₀ beyond, in the ratio κ′."""
    energy = bm.gay_berne(elongation=3.0, well_ratio=5.0, breadth=0.9, depth=1.1)
    beyond = (2 ** (1 / 6) - 1) * 0.9
    np.testing.assert_allclose([energy(*along((1, 0, 0), 0.9)), energy(*along((0, 0, 1), 2.7))], 0, atol=1e-12)
    side, end = energy(*along((1, 0, 0), 0.9 + beyond)), energy(*along((0, 0, 1), 2.7 + beyond))
    np.testing.assert_allclose(side / end, 5, rtol=1e-12)


def test_a_spring_of_no_length_is_smooth_where_its_ends_meet():
    x, R = jnp.zeros((2, 3)), jnp.broadcast_to(jnp.eye(3), (2, 3, 3))
    slope = jax.grad(bm.springs([[0, 1]], 2.0))(x, R)
    np.testing.assert_array_equal(slope, 0)


def test_numbers_take_the_precision_of_the_bodies():
    x, R = (jnp.asarray(part, jnp.float32) for part in scattered(COUNT))
    for name, (energy, _) in CASES.items():
        assert all(leaf.dtype == jnp.float32 for leaf in jax.eval_shape(jax.value_and_grad(energy), x, R)), name
    noise = bm.translation_noise(0.1) + bm.orientation_noise(MOMENTS) + bm.pair_noise(lambda a, b: a.data * b.x @ b.x, MASSES)
    assert jax.eval_shape(noise, x, R).dtype == jnp.float32


def test_data_may_be_whole_numbers_and_lists():
    """Species that pick a strength from a table."""
    table, q = jnp.array([[1.0, 2.0], [2.0, 5.0]]), tuple(map(jnp.asarray, scattered(COUNT)))
    species = [0, 1, 1, 0, 1]
    energy = bm.pair_potential(lambda a, b: table[a.data, b.data] * jnp.sin(b.x - a.x) @ (b.x - a.x), species)
    plain = pairs(lambda i, j, r, *_: float(table[species[i], species[j]]) * np.sin(r) @ r)
    np.testing.assert_allclose(energy(*q), plain(*map(np.asarray, q)), rtol=1e-12)


def test_a_number_in_front_scales():
    q = tuple(map(jnp.asarray, scattered(COUNT)))
    for factor in (2, np.float64(2.0), jnp.asarray(2.0)):
        np.testing.assert_allclose((factor * bm.soft_spheres())(*q), 2 * bm.soft_spheres()(*q))
        np.testing.assert_allclose((bm.soft_spheres() * factor)(*q), 2 * bm.soft_spheres()(*q))


def test_one_body_has_no_pairs():
    x, R = map(jnp.asarray, scattered(1))
    for energy in (bm.dipoles((1.0, 0.0, 0.0)), bm.soft_spheres(), bm.gay_berne(), bm.pair_potential(lambda a, b: a.x @ b.x)):
        assert energy(x, R) == 0


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda q: bm.dipoles(1.0), ShapeError, "moments must be a vector"),
        (lambda q: bm.dipoles(np.ones((3, 3)))(*q), ShapeError, "moments has shape .* there are 5 bodies"),
        (lambda q: bm.soft_spheres(0.0), DomainError, "diameter must be positive"),
        (lambda q: bm.soft_spheres(np.ones(4))(*q), ShapeError, "diameter has shape"),
        (lambda q: bm.soft_spheres(1.0, 1.0, 0), DomainError, "whole number"),
        (lambda q: bm.soft_box(1.0, exponent=3), DomainError, "even"),
        (lambda q: bm.springs([[0, 0]]), DomainError, "two different bodies"),
        (lambda q: bm.springs([[0, 7]])(*q), ShapeError, "ends in body 7"),
        (lambda q: bm.springs([[0, 1]], length=[1.0, 2.0]), ShapeError, "length must have shape"),
        (lambda q: bm.pair_potential(lambda a, b: a.x)(*q), ShapeError, "must return one number"),
        (lambda q: bm.pair_potential(lambda a: 0.0), ShapeError, r"function of \(a, b\)"),
        (lambda q: bm.pair_potential(lambda a, b: a.data, np.ones(4))(*q), ShapeError, "first axis is the 5 bodies"),
        (lambda q: bm.dipoles((0, 0, 1)) + bm.translation_noise(1.0), ShapeError, "Expected a potential, got a noise"),
        (lambda q: bm.gravity(float("nan")), DomainError, "finite"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(build, error, words):
    with pytest.raises(error, match=words):
        build(tuple(map(jnp.asarray, scattered(COUNT))))
