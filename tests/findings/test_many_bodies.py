"""Verification of many bodies needs memory in proportion to their number: beyond a hundred degrees of freedom no tangent map is written out."""

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
