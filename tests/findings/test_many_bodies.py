"""Verification of many bodies needs bounded memory: from a hundred degrees of freedom on no tangent map is written out; noise is drawn in parts."""

import re
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings import consistency, convergence_study, path_checks
from bismut.findings.structure import random_defect, step_structure
from bismut.findings.verify import _measured as measured_by_verify
from bismut.mechanics import State
from bismut.programs.evaluation import evaluator
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


@pytest.mark.parametrize("twist", [0.0, 1e-4])
def test_a_curl_of_many_is_seen_along_random_directions(twist, monkeypatch):
    monkeypatch.setattr(jax, "jacfwd", None)
    force = lambda q, v: -(q**3) - jnp.roll(q, 1) - jnp.roll(q, -1) + twist * jnp.sin(jnp.roll(q, 1))
    chain = bm.mechanical(bm.Euclidean(120), force=force)
    state = State(jnp.asarray(np.random.default_rng(SEED).normal(size=120)), jnp.zeros(120))
    (found,) = consistency.curl(study(bm.Langevin(chain, 1.0, 1.0), state, 0.01, SEED))
    assert found.verdict.value == ("fail" if twist else "pass")


@pytest.mark.long
def test_random_directions_take_the_frame_into_account():
    """dU of a potential on SO(3)^40 has no curl in the frame that turns, where e_i F_j − e_j F_i alone is not zero."""
    torque = lambda R, v: -bm.SO3().differential(lambda R: R[0, 2] * R[2, 1] + R[2, 2], R)
    bodies = bm.mechanical(bm.SO3() ** 40, force=jax.vmap(torque))
    state = State(jnp.tile(jnp.eye(3), (40, 1, 1)), 0.3 * jnp.asarray(np.random.default_rng(SEED).normal(size=(40, 3))))
    (found,) = consistency.curl(study(bm.Langevin(bodies, 1.0, 1.0), state, 0.01, SEED))
    assert found.verdict.value == "pass"


def test_invariants_of_many_take_no_direction_for_each_number(monkeypatch):
    monkeypatch.setattr(jax, "jacfwd", None)
    total = {"total": lambda q, p: jnp.sum(p), "wrong": lambda q, p: jnp.sum(p**3)}
    chain = bm.System(bm.Euclidean(120), lambda q, v: 0.5 * v @ v - jnp.sum(jnp.cos(q - jnp.roll(q, 1))), invariants=total)
    rng = np.random.default_rng(SEED)
    kept, wrong = path_checks._invariants(study(bm.Verlet(chain), State(*map(jnp.asarray, rng.normal(size=(2, 120)))), 0.1, SEED))
    assert (kept.verdict.value, wrong.verdict.value) == ("pass", "fail")


@pytest.mark.long
def test_what_does_not_fit_into_memory_is_not_measured(monkeypatch):
    """The tangent map of twelve rigid bodies with pair energies, where 1 MB is free; nothing of it is evaluated."""
    bodies = bm.rigid_bodies(mass=jnp.ones(12), inertia=jnp.ones((12, 3)), potential=bm.soft_spheres(1.0))
    state = random_state(bodies)
    monkeypatch.setattr("bismut.findings.memory._LITTLE", 0)
    monkeypatch.setattr("bismut.findings.memory.available_memory", lambda: 10**6)
    monkeypatch.setattr("bismut.programs.evaluation.prepared", None)
    findings = measured_by_verify(path_checks.one_step, study(bm.Verlet(bodies), state, 0.01, SEED))
    assert [finding.law for finding in findings] == ["symplectic defect", "phase volume"]
    for finding in findings:
        assert finding.verdict.value == "unmeasured"
        assert re.search(r"needs about \S+ [MG]B of memory, 1 MB are free", finding.how)


def test_the_estimate_is_what_is_held():
    """Values are kept until the end, so the sum of their bytes is the peak."""

    def function(x):
        for k in range(20):
            x = (x + k) * x
        return jnp.sum(x)

    estimates = []
    call, x = evaluator(function, estimates.append), np.linspace(0.0, 1.0, 10**5)
    tracemalloc.start()
    call(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.8 < estimates[0] / peak < 1.2


@pytest.mark.slow
def test_three_hundred_and_forty_three_points_with_neighbour_lists_are_verified():
    side = 7
    system = bm.mechanical(bm.Euclidean(3) ** side**3, potential=bm.lennard_jones(cutoff=2.0), box=1.1 * side)
    lattice = 1.1 * np.stack(np.meshgrid(*[np.arange(float(side))] * 3, indexing="ij"), -1).reshape(-1, 3)
    start = bm.Verlet(system).start(lattice, temperature=0.7)
    report = bm.verify(bm.Verlet(system), start, step=0.002, order=False, integrity=False, equilibrium=False)
    assert report.ok
    assert report["symplectic defect"].held
    assert {finding.law for finding in report.unmeasured} == {"phase volume", "momentum maps", "orders"}  # no symmetry is named, no order asked for


def test_studies_of_large_systems_have_fewer_trajectories():
    small, large = (bm.Verlet(bm.mechanical(bm.Euclidean(n))) for n in (3, 1800))
    assert (convergence_study.trajectories_for(small), convergence_study.trajectories_for(large)) == (64, 4)


@pytest.mark.long
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
