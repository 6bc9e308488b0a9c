"""What is adapted: the step that an acceptance wants, and the scales that may be changed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles.task import compilations
from bismut.mechanics import State
from bismut.samplers.adaptation import longest_step, step_change
from bismut.samplers.domain import domain_of
from bismut.samplers.scheme import Trajectories, Tuning
from bismut.samplers.surface import surface_of
from bismut.samplers.target import Target, unit_target


def test_the_step_that_an_acceptance_wants():
    """a = 2Φ(−c h²/2): from the acceptance of one step to the step of another acceptance."""
    from scipy.stats import norm

    accepted = lambda h: 2 * norm.cdf(-1.3 * h**2 / 2)
    h = 0.9
    assert accepted(h * np.exp(step_change(0.8, accepted(h)))) == pytest.approx(0.8, abs=1e-9)


def test_what_may_be_scaled():
    """Parameters beside a surface, not those in it, and none that a constraint across parameters ties."""
    beside = domain_of({"n": bm.Sphere(2), "R": bm.SO3(), "x": bm.Euclidean(2)})
    density = lambda p: 0.0 * p["x"][0]
    assert [root is None for root in unit_target(density, beside).roots] == [True, True, False]
    assert longest_step(unit_target(density, beside)) < 1
    across, _ = surface_of(beside, lambda p: p["x"] @ p["x"] + p["n"][0] - 2, "surface")
    assert [root is None for root in unit_target(density, across).roots] == [True, True, True]
    assert longest_step(unit_target(density, across)) == np.inf


@pytest.mark.long
def test_scales_compile_nothing():
    """A first call makes one program, and another none, on a group too, whose scale the draws of another seed change."""
    fisher = jnp.diag(jnp.array([3.0, 1.0, -0.5]))
    counts, scales = [compilations()], []
    for seed in range(2):
        draws = bm.sample(bm.SO3(), lambda R: jnp.sum(fisher * R), chains=32, draws=4, burn_in=40, seed=seed, progress=False)
        counts.append(compilations())
        scales.append(float(draws.target.spreads[0]))
    assert list(np.diff(counts)) == [1, 0]
    assert scales[0] != scales[1] != 1


@pytest.mark.long
def test_a_step_follows_its_scale():
    """Spreads that the first rounds find, of chains that only begin to move, are far too small: the step is right all the same in the end."""
    narrow = jnp.diag(jnp.array([120.0, 20.0, 4.0]))
    draws = bm.sample(bm.SO3(), lambda R: jnp.sum(narrow * R), chains=64, draws=20, burn_in=80, seed=1, leapfrogs=2, progress=False)
    assert draws.acceptance < 0.95 or float(draws.tuning.step) > 0.69
    assert float(draws.target.spreads[0]) == pytest.approx(np.mean([24, 124, 140]) ** -0.5, rel=0.3)  # rates s_i + s_j of its axes


@pytest.mark.long
def test_a_spread_is_a_mass():
    """Motion with p = v/σ and the force times σ is that of the mass 1/σ²: trapezoid steps of a top of inertia 4 are those with σ = ½."""
    potential = lambda R: -2 * R[2, 2] - R[0, 1]
    target = unit_target(lambda R: -potential(R), domain_of(bm.SO3()))
    scheme = Trajectories(Target(target.density, target.domain, target.roots, (jnp.asarray(0.5),)), Tuning(0.1, 9, 0.0))
    v = jnp.array([0.5, -0.2, 0.8])

    @jax.jit
    def end():
        begun = scheme.begin(jnp.eye(3))
        carry = State(begun.q, v / 0.5, begun.ledger), scheme.init_cache(begun, 0.0)
        for _ in range(3):
            carry = scheme.step_with_cache(*carry, 0.1, jnp.zeros(scheme.channels), 0.0)[:2]
        return carry[0]

    verlet = bm.Verlet(bm.mechanical(bm.SO3(), mass=4 * jnp.ones(3), potential=potential))
    path = bm.trajectory(verlet, verlet.start(jnp.eye(3), velocity=v), step=0.1, steps=3)
    assert np.abs(end().q - path.q[-1]).max() < 1e-13
    assert np.abs(end().p - 0.5 * path.p[-1]).max() < 1e-12


def test_parameters_share_a_scale():
    """L of (a, R, b) is one matrix of a and b; its inverse gives back where a chain was, of one point and of many."""
    space = {"a": bm.Real(), "R": bm.SO3(), "b": bm.Euclidean(2)}
    target = unit_target(lambda p: 0.0 * p["a"], domain_of(space))
    L = np.array([[2.0, 0, 0], [1, 3, 0], [0.5, -1, 0.5]])
    target = Target(target.density, target.domain, (jnp.asarray(L[:1, :1]), None, jnp.asarray(L[1:])), target.spreads)
    assert [(i.shape if i is not None else None) for i in target.roots] == [(1, 1), None, (2, 3)]
    assert np.array_equal(target.matrix([0, 2]), L)
    q = (jnp.array([0.3]), jnp.eye(3), jnp.array([-1.0, 2.0]))
    x = target.unscaled(q)
    assert np.allclose(np.concatenate([x[0], x[2]]), L @ np.array([0.3, -1, 2]), atol=1e-14)
    many = target.scaled(jax.tree.map(lambda leaf: np.stack([leaf, 2 * leaf]), x))
    for back in (target.scaled_one(x), jax.tree.map(lambda leaf: leaf[0], many)):
        assert jax.tree.all(jax.tree.map(lambda a, b: np.allclose(a, b, atol=1e-14), back, q))


def test_large_parameters_are_cut_into_groups():
    shapes = lambda *sizes: [r.shape for r in unit_target(sum, domain_of({f"x{i}": bm.Euclidean(n) for i, n in enumerate(sizes)})).roots]
    assert shapes(120, 300, 80, 1, 5) == [(120, 120), (300,), (80, 200), (1, 1), (5, 6)]


def test_a_dictionary_is_as_good_as_a_vector():
    """A normal density with correlations of 0.99 between two numbers and a vector has as many effective draws as in one vector; a scale for each of
    the parameters left a thirtieth of them, because its condition number is 400."""
    P = jnp.asarray(np.linalg.inv(0.01 * np.eye(4) + 0.99))
    settings = {"chains": 64, "draws": 40, "burn_in": 80, "leapfrogs": 2, "seed": 3, "progress": False}
    vector = bm.sample(bm.Euclidean(4), lambda x: -0.5 * x @ P @ x, **settings)
    whole = lambda p: jnp.concatenate([jnp.stack([p["a"], p["b"]]), p["c"]])
    named = bm.sample({"a": bm.Real(), "b": bm.Real(), "c": bm.Euclidean(2)}, lambda p: -0.5 * whole(p) @ P @ whole(p), **settings)
    assert named.ess > 0.6 * vector.ess
    assert vector.ess > 0.2 * 64 * 40
