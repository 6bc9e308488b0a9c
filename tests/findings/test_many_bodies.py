"""Verification of many bodies needs bounded memory: from a hundred degrees of freedom on no tangent map is written out; noise is drawn in parts."""

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings import convergence_study, path_checks
from bismut.findings.structure import random_defect, step_structure
from bismut.mechanics import State
from tests.findings import saboteurs
from tests.findings.studies import study
from tests.systems import random_state

SEED = 3


def both(scheme, state, h=0.05):
    """The dense defect, the one along random directions, and its size."""
    dW = 0.2 * jnp.ones(scheme.channels)
    dense = float(step_structure(scheme, state, jnp.asarray(h), dW, 0.0)[0])
    return dense, *map(float, random_defect(scheme, state, jnp.asarray(h), dW, 0.0))


def test_random_directions_see_what_all_directions_see():
    """Round-off for a variational step on T*(ℝ³ × SO(3))², with noise, and as much as the dense defect where it is none."""
    system = bm.rigid_bodies(
        mass=[1.0, 2.0],
        inertia=[[1.0, 2.0, 2.5]] * 2,
        potential=lambda x, R: jnp.sum(x[0] * x[1]) + R[0, 2, 2] * x[1, 0],
        noise=lambda x, R: jnp.array([x[0] @ x[1], R[1, 0, 0] * x[0, 1]]),
    )
    dense, random, size = both(bm.VariationalEuler(system), random_state(system))
    assert max(dense, random) < 1e-12 * size
    body = bm.mechanical(bm.SO3(), mass=saboteurs.INERTIA)
    dense, random, _ = both(saboteurs.Misprint(body), State(jnp.eye(3), jnp.array([0.6, 1.0, -0.8])), 0.1)
    assert dense > 1e-4
    assert 0.1 < random / dense < 30


def test_random_directions_along_constraints():
    sphere = bm.mechanical(bm.Euclidean(3), potential=lambda q: q[2] + q[0] ** 3, constraint=lambda q: jnp.array([q @ q - 1]))
    dense, random, size = both(bm.Verlet(sphere), State(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 0.3, 0.2])))
    assert max(dense, random) < 1e-12 * size


@pytest.mark.parametrize("kind", [bm.Verlet, saboteurs.SymplecticRungeKutta])
def test_a_large_system_is_judged_without_a_tangent_map(kind, monkeypatch):
    monkeypatch.setattr("bismut.findings.structure.tangent_map", None)
    chain = bm.mechanical(bm.Euclidean(120), potential=lambda q: jnp.sum(jnp.cosh(q)) + jnp.sum(q[1:] * q[:-1]))
    rng = np.random.default_rng(SEED)
    state = State(jnp.asarray(rng.normal(size=120)), jnp.asarray(rng.normal(size=120)))
    symplectic, volume = path_checks.one_step(study(kind(chain), state, 0.3, SEED))
    assert symplectic.verdict.value == ("pass" if kind is bm.Verlet else "fail")
    assert "degrees of freedom" in volume.how


def test_studies_of_large_systems_have_fewer_trajectories():
    small, large = (bm.Verlet(bm.mechanical(bm.Euclidean(n))) for n in (3, 1800))
    assert (convergence_study.trajectories_for(small), convergence_study.trajectories_for(large)) == (64, 4)


def test_noise_of_many_bodies_is_drawn_in_parts_and_is_the_same():
    """64 trajectories of 256 steps and 48 channels, 6 MB: drawn at once they take 1.2 GB on the way, and in parts a quarter of that."""
    body = bm.mechanical(bm.Euclidean(48), noise=lambda q: q)
    scheme, path = bm.Verlet(body), bm.Wiener(3)
    tracemalloc.start()
    drawn = convergence_study.fine_increments(scheme, path, 0.1, 256, 64)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5e9
    few = convergence_study.fine_increments(scheme, path, 0.1, 256, 2, first=40)
    np.testing.assert_array_equal(drawn[40:42], few)


def test_without_noise_none_is_drawn(monkeypatch):
    oscillator = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q, noise=lambda q: q)
    monkeypatch.setattr(convergence_study, "fine_increments", None)
    levels, start = {"time": 1.0, "levels": (8, 16), "finest": 64, "t0": 0.0}, State(jnp.ones(1), jnp.ones(1))
    study = convergence_study.convergence(bm.VariationalEuler(oscillator), bm.Verlet(oscillator), start, noise=0.0, **levels)
    assert 0.8 < study.order < 1.2
