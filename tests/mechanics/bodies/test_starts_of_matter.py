"""Starts of matter: lattices, random packings, and minima of the energy on every kind of space."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import KDTree

import bismut as bm
from bismut.errors import BismutError
from bismut.flows import descent


def nearest(x: np.ndarray, sides) -> np.ndarray:
    """The distance of each place to its nearest neighbour."""
    sides = np.broadcast_to(sides, x.shape[1])
    return KDTree(x % sides, boxsize=sides).query(x % sides, k=2)[0][:, 1]


@pytest.mark.parametrize(
    ("kind", "count", "box", "distance"),
    [
        ("sc", 27, 6.0, 2.0),
        ("bcc", 54, 6.0, np.sqrt(3.0)),
        ("fcc", 108, 6.0, np.sqrt(2.0)),
        ("diamond", 64, 8.0, np.sqrt(3.0)),
        ("fcc", 4 * 2 * 2 * 3, (4.0, 4.0, 6.0), np.sqrt(2.0)),
        ("square", 12, (3.0, 4.0), 1.0),
        ("hexagonal", 2 * 4 * 3, (4.0, 3 * np.sqrt(3.0)), 1.0),
    ],
)
def test_a_lattice_has_its_nearest_distance(kind, count, box, distance):
    x = bm.lattice(kind, box=box, count=count)
    assert x.shape == (count, np.size(x[0]))
    np.testing.assert_allclose(nearest(x, box), distance, rtol=1e-12)


def test_places_of_a_lattice_may_stay_empty():
    """216 of 256 places of a face-centred lattice: no two fall together, and no half of the box is much emptier than the other."""
    x = bm.lattice("fcc", box=8.0, count=216)
    assert nearest(x, 8.0).min() > 1.4
    assert np.all(np.abs((x < 4.0).sum(0) - 108) <= 10)


@pytest.mark.parametrize(("box", "count", "distance"), [((5.0, 6.0, 7.0), 200, 1.0), ((10.0, 12.0), 80, 1.0), (6.0, 50, np.linspace(0.5, 1.5, 50))])
def test_random_places_keep_their_distance(box, count, distance):
    x, size = bm.random_packing(count, box=box, distance=distance, seed=3), np.broadcast_to(distance, count)
    sides = np.broadcast_to(box, x.shape[1])
    r = x[:, None] - x
    r = np.linalg.norm(r - sides * np.round(r / sides), axis=-1) + 1e9 * np.eye(count)
    assert np.all(r >= 0.5 * (size[:, None] + size))
    assert not np.array_equal(x, bm.random_packing(count, box=box, distance=distance, seed=4))
    assert np.array_equal(x, bm.random_packing(count, box=box, distance=distance, seed=3))


def test_a_packing_that_is_too_dense_is_refused(monkeypatch):
    monkeypatch.setattr("bismut.mechanics.bodies.packing._SWEEPS", 50)
    with pytest.raises(BismutError, match="of the box"):
        bm.random_packing(50, box=4.0, distance=1.2)


@pytest.mark.parametrize(
    ("count", "box", "distance", "percent"),
    [(1000, 5.0, 1.0, 419), (60, 4.0, 1.2, 85), (11, (10.0,), 1.0, 110), (24, (4.0, 5.0), 1.0, 94), (60, 4.0, np.linspace(1.3, 1.4, 60), 121)],
)
def test_a_packing_denser_than_any_is_refused_at_once(monkeypatch, count, box, distance, percent):
    """Equal balls fill π/√18 of space and π/√12 of the plane at most, others less than all of it."""
    monkeypatch.setattr("numpy.random.default_rng", lambda seed: pytest.fail("it was tried"))
    with pytest.raises(BismutError, match=f"would fill {percent}% of the box"):
        bm.random_packing(count, box=box, distance=distance)


def test_thirteen_points_find_the_icosahedron():
    """From the icosahedron, disturbed: the energy of the Lennard-Jones cluster of 13 points is −44.326801 (Hoare & Pal)."""
    golden = (1 + np.sqrt(5)) / 2
    corners = [[0, a, b * golden] for a in (1, -1) for b in (1, -1)]
    ico = np.array([[0, 0, 0], *(np.roll(c, k) for c in corners for k in range(3))]) * 1.1 / np.sqrt(1 + golden**2)
    x = ico + 0.1 * np.random.default_rng(0).normal(size=ico.shape)
    system = bm.mechanical(bm.Euclidean(3) ** 13, potential=bm.lennard_jones())
    end = bm.minimize(system, jnp.asarray(x), tolerance=1e-7)
    assert end.converged
    assert end.force <= 1e-7
    assert abs(end.energy + 44.326801) < 1e-6
    assert "largest force" in repr(end)


def test_overlapping_points_in_a_box_are_driven_apart():
    side = (32 / 0.8) ** (1 / 3)
    x = np.random.default_rng(2).uniform(0, side, (32, 3))
    system = bm.mechanical(bm.Euclidean(3) ** 32, potential=bm.lennard_jones(cutoff=side / 2), box=side)
    end = bm.minimize(system, x, tolerance=1e-4)
    assert end.converged
    assert end.energy < -130
    assert nearest(np.asarray(end.q), side).min() > 0.85
    slope = jax.grad(lambda x: system.potential(x, 0.0))(end.q)
    assert np.isclose(float(jnp.abs(slope).max()), end.force, rtol=1e-6)


def test_many_points_are_minimised_by_machine_code_in_few_steps(monkeypatch):
    """Shaken stiff directions would take 2450 steps to 1e-3 and 7400 to 1e-6."""
    monkeypatch.setattr(importlib.import_module("bismut.ensembles.minimize"), "_by_xla", None)
    side = (216 / 0.8442) ** (1 / 3)
    liquid = bm.mechanical(bm.Euclidean(3) ** 216, potential=bm.lennard_jones(cutoff=(2.2, 2.5)), box=side)
    end = bm.minimize(liquid, bm.random_packing(216, box=side, distance=0.85, seed=1), tolerance=1e-6)
    assert end.converged
    assert end.steps <= 3500
    assert end.energy / 216 < -6.65


def test_the_energy_never_rises_and_the_step_fits_the_stiffest_direction():
    """ω = 1, 10 and 100: h grows until c/ω, and U falls from step to step, also where the first step is much too long."""
    well = bm.mechanical(bm.Euclidean(3), potential=lambda q: 0.5 * (q[0] ** 2 + 100 * q[1] ** 2 + 1e4 * q[2] ** 2))

    def go(now, _):
        now = descent.step(well, now, 0.0)
        return now, (now.energy, now.h)

    run = jax.jit(lambda h: jax.lax.scan(go, descent.begin(well, jnp.ones(3), h, 0.0), length=1000)[1])
    for first in (1e-3, 1.0):
        energy, h = map(np.asarray, run(first))
        assert np.all(np.diff(energy) <= 16 * np.finfo(float).eps * energy[:-1])
        assert energy[-1] < 1e-6
        assert np.median(h[500:]) < 2 / 100


def test_on_a_group_and_under_constraints():
    """A dipole turns into its field; a bead slides down a sphere; two dipoles at a distance held by a constraint lie head to tail."""
    top = bm.mechanical(bm.SO3(), mass=jnp.array([1.0, 2.0, 3.0]), potential=lambda R: -2.0 * R[2, 2])
    end = bm.minimize(top, bm.SO3().move(jnp.eye(3), jnp.array([1.0, 0.4, 0.2])), tolerance=1e-8)
    assert end.converged
    assert np.isclose(end.energy, -2.0, rtol=1e-12)
    bead = bm.mechanical(bm.Euclidean(3), potential=lambda q: q[2] + 0.1 * q[0], constraint=lambda q: jnp.array([q @ q - 1.0]))
    end = bm.minimize(bead, jnp.array([0.6, 0.0, 0.8]), tolerance=1e-8)
    np.testing.assert_allclose(end.q, -np.array([0.1, 0.0, 1.0]) / np.sqrt(1.01), atol=1e-7)
    assert np.isclose(end.energy, -np.sqrt(1.01), rtol=1e-12)
    distance = 1.3
    pair = bm.rigid_bodies(
        mass=[1.0, 2.0],
        inertia=[[1.0, 2.0, 2.5], [1.0, 1.0, 1.5]],
        potential=bm.dipoles([[0.0, 0.0, 1.0], [0.0, 2.0, 0.0]]),
        constraint=lambda x, R: jnp.array([(x[1] - x[0]) @ (x[1] - x[0]) - distance**2]),
    )
    apart = (
        np.array([[0.0, 0.0, 0.0], [distance, 0.0, 0.0]]),
        np.asarray(bm.SO3().from_rotation_vector(jnp.array([0.3, 0.9, 0.1]))) * np.ones((2, 1, 1)),
    )
    end = bm.minimize(pair, apart, tolerance=1e-8)
    assert end.converged
    assert np.isclose(end.energy, -2 * 1.0 * 2.0 / distance**3, rtol=1e-12)  # −2 m m′/r³, both along the line between them
    x, R = map(np.asarray, end.q)
    line = (x[1] - x[0]) / distance
    heads = R[0] @ [0, 0, 1.0], R[1] @ [0, 1.0, 0]
    np.testing.assert_allclose(np.abs(heads @ line), 1.0, atol=1e-7)
    assert heads[0] @ heads[1] > 0.999


def test_what_has_no_minimum_or_was_cut_short_says_so():
    fall = bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.exp(q[0]))
    with pytest.raises(BismutError, match="no lower bound"):
        bm.minimize(fall, jnp.array([1.0]))
    well = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q[0] ** 2)
    short = bm.minimize(well, jnp.array([1.0]), steps=3)
    assert not short.converged
    assert short.steps == 3
    assert "not converged" in repr(short)
    touching = bm.mechanical(bm.Euclidean(3) ** 2, potential=bm.lennard_jones())
    with pytest.raises(BismutError, match="leads downhill"):
        bm.minimize(touching, jnp.zeros((2, 3)))
