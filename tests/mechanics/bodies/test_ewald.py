"""Ewald sums, against lattice constants, direct sums and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bismut as bm
from bismut.errors import BismutError
from bismut.programs.evaluation import evaluate

CUBE = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), -1).reshape(-1, 3).astype(float)
STILL = np.tile(np.eye(3), (8, 1, 1))
MADELUNG = 1.7475645946331822  # rock salt
RNG = np.random.default_rng(2)
PLACES, CHARGES, SIDE = RNG.uniform(0, 5.0, (10, 3)), np.array([1.0, -1.0] * 5), 5.0


def boxed(accuracy=1e-10, side=SIDE, **settings):
    return bm.sites(charges=CHARGES, electrostatics=bm.Ewald(accuracy, **settings)).inside((side,) * 3)


def forces(energy, *q):
    """∂U/∂x, and of bodies the slope by turns of each about the axes of its frame, torques: (1 or 2, bodies, 3)."""
    if len(q) == 1:
        return np.asarray(evaluate(jax.grad(energy), *q))[None]
    turned = jax.vmap(bm.SO3().move)
    slopes = jax.grad(lambda x, turn: energy(x, turned(q[1], turn)), argnums=(0, 1))
    return np.stack(evaluate(slopes, jnp.asarray(q[0]), jnp.zeros_like(q[0])))


def error_of(rough, exact):
    return np.sqrt(((rough - exact) ** 2).sum() / (exact**2).sum())


def test_rock_salt_has_madelungs_constant():
    charges = np.where(CUBE.sum(1) % 2, -1.0, 1.0)
    energy = bm.sites(charges=charges, electrostatics=bm.Ewald(1e-12)).inside((2.0,) * 3)
    assert abs(-2 * float(energy(CUBE)) / 8 - MADELUNG) < 1e-11
    assert "13372 wave vectors" in str(energy)  # it says what the accuracy asks for


@pytest.mark.parametrize(("columns", "expected"), [(False, -2 * np.pi / 3), (True, -2.6767886844)])
def test_dipoles_on_a_cubic_lattice_have_their_energy(columns, expected):
    sign = np.where((CUBE[:, 0] + CUBE[:, 1]) % 2, -1.0, 1.0) if columns else np.ones(8)
    moments = sign[:, None] * np.array([0.0, 0.0, 1.0])
    energy = bm.dipoles(moments, ewald=bm.Ewald(1e-12)).inside((2.0,) * 3)
    assert abs(float(energy(CUBE, STILL)) / 8 - expected) < 1e-10
    # A sphere of the lattice in vacuum has no field inside, if it is polarised: E = 0 for the simple cubic lattice.
    vacuum = bm.dipoles(moments, ewald=bm.Ewald(1e-12, dielectric=1.0)).inside((2.0,) * 3)
    assert abs(float(vacuum(CUBE, STILL)) / 8 - (expected if columns else 0.0)) < 1e-10


def test_forces_are_those_of_a_direct_sum_over_images():
    """Spheres of images in vacuum; what lies beyond the n-th shell falls off as 1/n², as the extrapolation uses."""

    def direct(shells):
        images = np.stack(np.meshgrid(*[np.arange(-shells, shells + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
        images = SIDE * images[(images**2).sum(1) <= shells**2]
        force = np.zeros_like(PLACES)
        for i in range(10):
            for j in range(10):
                r = PLACES[j] - PLACES[i] + images
                r = r[(r**2).sum(1) > 0]
                force[i] += CHARGES[i] * CHARGES[j] * (r / (r**2).sum(1)[:, None] ** 1.5).sum(0)
        return force  # the gradient of the energy

    exact = forces(boxed(dielectric=1.0), PLACES)
    assert error_of(direct(16), exact) < 2e-3
    assert error_of(forces(boxed(), PLACES), exact) > 2e-2  # tin foil is another model where the box has a dipole


@pytest.mark.long
def test_forces_have_the_accuracy_that_was_asked_for():
    """Of ions, and forces as well as torques of molecules and of dipoles, each relative to the root mean square of its kind."""
    water = bm.body([[0, 0, 0], [0.8165, 0, 0.5774], [-0.8165, 0, 0.5774]], [16.0, 1.0, 1.0])
    x, R = 4.0 * CUBE + RNG.uniform(-0.8, 0.8, (8, 3)), Rotation.random(8, random_state=np.random.default_rng(1)).as_matrix()
    for make, places, side in (
        (lambda ewald: bm.sites(charges=CHARGES, electrostatics=ewald), (PLACES,), SIDE),
        (lambda ewald: bm.sites(water.points, charges=[-0.8, 0.4, 0.4], electrostatics=ewald), (x, R), 8.0),
        (lambda ewald: bm.dipoles((0.0, 0.3, 1.0), ewald=ewald), (x, R), 8.0),
    ):
        exact, *rough = (forces(make(bm.Ewald(a)).inside((side,) * 3), *places) for a in (1e-10, 1e-2, 1e-4, 1e-6))
        for kind in range(len(places)):
            shares = [error_of(one[kind], exact[kind]) / accuracy for one, accuracy in zip(rough, (1e-2, 1e-4, 1e-6), strict=True)]
            assert max(shares) < 1, (kind, shares)


def test_torques_are_the_slope_of_the_energy_by_turns():
    """Of water-like molecules in a box: U at turns of ±1e-5 about each axis of each frame, so that what torques are accurate to is the energy's."""
    water = bm.body([[0, 0, 0], [0.8165, 0, 0.5774], [-0.8165, 0, 0.5774]], [16.0, 1.0, 1.0])
    x, R = 4.0 * CUBE, Rotation.random(8, random_state=np.random.default_rng(3)).as_matrix()
    energy = bm.sites(water.points, charges=[-0.8, 0.4, 0.4], electrostatics=bm.Ewald(1e-4)).inside((8.0,) * 3)
    torques, eps = forces(energy, x, R)[1], 1e-5
    of = jax.jit(lambda turn: energy(x, jax.vmap(bm.SO3().move)(R, turn)))
    for body, axis in ((0, 0), (3, 1), (7, 2)):
        turn = np.zeros((8, 3))
        turn[body, axis] = eps
        assert np.isclose(torques[body, axis], (float(of(turn)) - float(of(-turn))) / (2 * eps), rtol=1e-5, atol=1e-7)


def test_molecules_are_what_their_charges_are():
    """Charges on rigid bodies, and the same charges as points, bodies being excluded pairs: one energy. Also with a net charge."""
    R, x = Rotation.random(4, random_state=np.random.default_rng(7)).as_matrix(), 4.0 * CUBE[:4]
    z, q = np.array([[0.5, 0, 0.1], [-0.4, 0.2, 0]]), np.array([0.7, -0.4])
    bodies = bm.sites(z, charges=q, electrostatics=bm.Ewald(1e-12)).inside((8.0,) * 3)
    points = np.asarray(bm.points_of(x, R, z)).reshape(-1, 3)
    own = [(2 * i, 2 * i + 1) for i in range(4)]
    sites = bm.sites(charges=np.tile(q, 4), electrostatics=bm.Ewald(1e-12), exclude=own).inside((8.0,) * 3)
    assert np.isclose(float(bodies(x, R)), float(sites(points)), rtol=1e-10)
    alone = bm.sites(charges=np.tile(q, 4), electrostatics=bm.Ewald(1e-12)).inside((8.0,) * 3)
    within = sum(q[0] * q[1] / np.linalg.norm(points[i] - points[j]) for i, j in own)
    assert np.isclose(float(alone(points)) - within, float(sites(points)), rtol=1e-9)


def test_an_image_is_the_same_for_what_is_neutral_and_in_tin_foil():
    """In a medium of finite ε an ion of charge q taken a side l away changes U by 2π(|M + q l|² − |M|²)/((2ε + 1) V), and nothing else does."""
    moved, epsilon = PLACES.copy(), 3.0
    moved[3, 1] += SIDE
    M, more = CHARGES @ PLACES, CHARGES @ moved
    expected = 2 * np.pi / ((2 * epsilon + 1) * SIDE**3) * (more @ more - M @ M)
    foil, medium = boxed(), boxed(dielectric=epsilon)
    assert abs(expected) > 0.1
    assert np.isclose(float(medium(moved)) - float(medium(PLACES)), expected, rtol=1e-9)
    assert np.isclose(float(foil(moved)), float(foil(PLACES)), rtol=1e-12)
    R, x = Rotation.random(4, random_state=np.random.default_rng(7)).as_matrix(), 4.0 * CUBE[:4]
    z, far = [[0.5, 0, 0.1], [-0.4, 0.2, 0]], x + 8.0 * np.eye(4, 3)
    bodies = bm.sites(z, charges=[0.7, -0.7], electrostatics=bm.Ewald(1e-10, dielectric=epsilon)).inside((8.0,) * 3)
    assert np.isclose(float(bodies(far, R)), float(bodies(x, R)), rtol=1e-11)


@pytest.mark.parametrize("dielectric", [np.inf, 1.0])
def test_the_pressure_is_the_derivative_of_the_energy_by_the_box(dielectric):
    system = bm.mechanical(bm.Euclidean(3) ** 10, potential=bm.sites(charges=CHARGES, electrostatics=bm.Ewald(1e-12, dielectric)), box=SIDE)
    scheme = bm.Verlet(system)
    tensor = np.asarray(bm.pressure_tensor(scheme, scheme.start(jnp.asarray(PLACES), momentum=jnp.zeros((10, 3)))))
    for axis in range(3):

        def energy(s, axis=axis):
            scales = 1 + s * np.eye(3)[axis]
            return float(bm.sites(charges=CHARGES, electrostatics=bm.Ewald(1e-12, dielectric)).inside(tuple(SIDE * scales))(PLACES * scales))

        assert np.isclose(tensor[axis, axis] * SIDE**3, -(energy(1e-5) - energy(-1e-5)) / 2e-5, rtol=1e-6, atol=1e-6)
    if np.isinf(dielectric):  # U(λx, λl) = U/λ
        assert np.isclose(np.trace(tensor) * SIDE**3, float(system.potential(jnp.asarray(PLACES))), rtol=1e-9)


def test_a_trajectory_keeps_its_energy_at_the_order_of_the_scheme():
    charges = np.where(CUBE.sum(1) % 2, -1.0, 1.0)
    potential = bm.sites(charges=charges, epsilon=0.2, sigma=0.9, electrostatics=bm.Ewald(1e-6), cutoff=1.4)
    system = bm.mechanical(bm.Euclidean(3) ** 8, potential=potential, box=3.0)
    scheme = bm.Verlet(system)
    start = scheme.start(jnp.asarray(1.5 * CUBE), momentum=jnp.asarray(0.3 * RNG.normal(size=(8, 3))))

    def wander(h):
        result = bm.simulate(scheme, start, step=h, steps=round(0.8 / h), trajectories=1, observe={"H": bm.energy}, every=round(0.04 / h))
        return np.ptp(np.asarray(result.H.mean))

    assert 3.5 < wander(0.02) / wander(0.01) < 4.5


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: boxed().parts and bm.sites(charges=CHARGES, electrostatics=bm.Ewald())(PLACES), "no box"),
        (lambda: bm.dipoles((0, 0, 1.0), ewald=bm.Ewald())(CUBE, STILL), "no box"),
        (lambda: bm.Ewald(2.0), "accuracy must be"),
        (lambda: bm.Ewald(dielectric=0.0), "dielectric constant"),
        (lambda: boxed(1e-14, side=5.0).inside((5.0, 5.0, np.inf)), "three axes"),
        (lambda: bm.sites(charges=CHARGES, electrostatics=bm.Ewald(1e-12), cutoff=0.3).inside((5.0,) * 3), "wave vectors"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(BismutError, match=words):
        make()


def test_many_charges_are_machine_code_on_any_threads():
    """From 256 bodies on lanes are bodies. Leapfrog from rest, p = −h (∇U(q₀) + ∇U(q₁))/2, with U by XLA; and threads do not matter to the bit."""
    n, side, h = 257, 14.0, 1e-3
    x = bm.lattice("sc", box=side, count=n) + 0.05 * np.random.default_rng(0).normal(size=(n, 3))
    pairs = [(2 * i, 2 * i + 1) for i in range(n // 2)]
    potential = bm.sites(charges=np.where(np.arange(n) % 2, 1.0, -1.0), cutoff=5.0, electrostatics=bm.Ewald(0.1), exclude=pairs)
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(3) ** n, potential=potential, box=side))
    start, watch = scheme.start(x, momentum=np.zeros((n, 3))), {"U": bm.potential_energy}
    run = lambda threads: bm.simulate(scheme, start, step=h, steps=1, trajectories=1, observe=watch, mode="native", executor=bm.Threads(threads))
    alone, shared = run(1), run(2)
    assert np.array_equal(alone.final.q, shared.final.q)
    exact = jax.jit(jax.value_and_grad(potential.inside((side,) * 3)))
    (before, one), (after, other) = exact(x), exact(alone.final.q[0])
    np.testing.assert_allclose(alone.U.mean, [before, after], rtol=1e-12)
    np.testing.assert_allclose(alone.final.p[0], -h * (one + other) / 2, rtol=0, atol=1e-12 * h * np.abs(one).max())


def test_lennard_jones_fades_as_asked_whatever_charges_do():
    """u(r) of two sites with hardly any charge between 2 and 4, and to half of the side from 0.8 of it on if no cutoff is given."""

    def energy(r, cutoff, electrostatics):
        return float(
            bm.sites(charges=[1e-9, -1e-9], epsilon=1.0, cutoff=cutoff, electrostatics=electrostatics).inside((10.0,) * 3)(
                np.array([[0.0, 0, 0], [r, 0, 0]])
            )
        )

    def expected(r, begin, end):
        s = np.clip((r**2 - begin**2) / (end**2 - begin**2), 0, 1)
        return 4 * (r**-12 - r**-6) * (1 - s**3 * (10 - 15 * s + 6 * s**2))

    for r in (1.5, 3.0, 3.9):
        for electrostatics in (None, bm.ReactionField(78.0), bm.Ewald(1e-2)):
            assert np.isclose(energy(r, (2.0, 4.0), electrostatics), expected(r, 2.0, 4.0), rtol=1e-9)
    assert np.isclose(energy(4.5, None, bm.Ewald(1e-2)), expected(4.5, 4.0, 5.0), rtol=1e-9)
