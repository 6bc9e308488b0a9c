"""Local constraints are solved as a band; what cannot be solved is said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError, DegenerateError, DomainError, ShapeError
from bismut.flows import VariationalFlow
from bismut.mechanics.kkt import Band, eliminated, solve_eliminated
from bismut.programs.evaluation import evaluate
from tests.constraints.systems import chain, sphere, start_of, triatomic, walked


@pytest.mark.parametrize("half", [1, 2, 4])
def test_a_banded_system_has_the_solution_of_the_full_one(half):
    rng, k = np.random.default_rng(half), 12
    S = rng.normal(size=(k, k)) + 8 * np.eye(k)
    S[np.abs(np.subtract.outer(np.arange(k), np.arange(k))) > half] = 0
    y = rng.normal(size=k)
    bands = np.array([[S[i, i + d] if 0 <= i + d < k else 0.0 for d in range(-half, half + 1)] for i in range(k)])
    assert np.allclose(evaluate(lambda bands, y: solve_eliminated(*eliminated(bands), y), bands, y), np.linalg.solve(S, y), atol=1e-13)
    shuffled = rng.permutation(k)
    band = Band(tuple(map(int, np.argsort(shuffled))), half)
    P = S[np.ix_(shuffled, shuffled)]
    assert np.allclose(evaluate(lambda A, y: band.factor(lambda x: A @ x, float)(y), P, y), np.linalg.solve(P, y), atol=1e-13)


def test_a_chain_of_a_hundred_links_is_a_band_of_half_width_one():
    structure = VariationalFlow(bm.Verlet(chain(100))).structure()
    assert structure.constrained is not None
    assert structure.constrained.band.half == 1
    assert structure.cells.runs == ((300, 1),)


def test_molecules_do_not_couple():
    """Twenty water-like triangles in one array: the multipliers of each stay among themselves, whatever the order of the constraints."""
    i, j = np.array([[3 * m + a, 3 * m + b] for a, b in ((0, 1), (1, 2), (0, 2)) for m in range(20)]).T
    many = bm.mechanical(bm.Euclidean(3) ** 60, constraint=lambda x: jnp.sum((x[i] - x[j]) ** 2, -1) - 1.0)
    band = VariationalFlow(bm.Verlet(many)).structure().constrained.band
    assert band.half == 2


@pytest.mark.long
def test_the_band_and_the_dense_solve_give_one_trajectory():
    """A chain whose constraints are mixed by a regular matrix has a dense structure and the same motion."""
    links = 5
    plain = chain(links)
    mix = np.eye(links) + 0.3 * np.random.default_rng(0).normal(size=(links, links))
    dense = bm.mechanical(
        plain.space,
        mass=np.linspace(1.0, 2.0, links)[:, None],
        potential=plain.potential,
        noise=plain.noise,
        constraint=lambda x: jnp.asarray(mix) @ plain.constraint(x),
    )
    first, second = bm.Verlet(plain), bm.Verlet(dense)
    assert VariationalFlow(second).structure().constrained.band.full
    start = start_of(first)
    (a, done), (b, also) = (walked(scheme, start, 0.02, 15) for scheme in (first, second))
    assert done
    assert also
    assert np.abs(np.asarray(a.q) - np.asarray(b.q)).max() < 1e-11


def test_constraints_that_are_linear_need_one_correction():
    """A bead on an inclined plane: the equation of the step is linear."""
    plane = bm.mechanical(bm.Euclidean(3), potential=lambda q: q[2], constraint=lambda q: jnp.array([q @ jnp.array([1.0, 2.0, 3.0])]))
    assert VariationalFlow(bm.Verlet(plane)).structure().linear


def test_redundant_rows_are_named():
    system = bm.mechanical(bm.Euclidean(3), constraint=lambda q: jnp.array([q @ q - 1.0, 2 * (q @ q) - 2.0]))
    with pytest.raises(DegenerateError, match=r"g\[0\], g\[1\] depend on each other"):
        bm.Verlet(system).start(jnp.array([0.0, 0.0, 1.0]), velocity=jnp.array([1.0, 0.0, 0.0]))


def test_a_vanishing_gradient_is_named():
    system = bm.mechanical(bm.Euclidean(3), constraint=lambda q: jnp.array([q[0], q[1] ** 2]))
    with pytest.raises(DegenerateError, match=r"g\[1\] vanishes"):
        bm.Verlet(system).start(jnp.zeros(3), velocity=jnp.array([0.0, 0.0, 1.0]))


def test_starts_are_checked_and_projected_on_request():
    scheme = bm.Verlet(sphere())
    with pytest.raises(DomainError, match=r"off the constraints: \|g\(q\)\| is 0.21 in row 0"):
        scheme.start(jnp.array([0.0, 0.0, 1.1]), velocity=jnp.zeros(3))
    with pytest.raises(DomainError, match="velocity leads off"):
        scheme.start(jnp.array([0.0, 0.0, 1.0]), velocity=jnp.array([0.0, 0.0, 1.0]))
    with pytest.raises(DomainError, match="off the constraints"):
        scheme.start(jnp.array([0.0, 0.0, 1.1]), temperature=1.0)
    batch = scheme.start(jnp.array([[0.0, 0.3, 1.1], [0.9, 0.1, 0.0]]), velocity=jnp.ones((2, 3)), project=True)
    q, p = np.asarray(batch.q), np.asarray(batch.p)
    assert np.abs(np.sum(q**2, 1) - 1).max() < 1e-14
    assert np.abs(np.sum(q * p, 1)).max() < 1e-14


def test_a_step_too_large_for_the_projection_is_an_outcome():
    scheme = bm.Verlet(sphere())
    start = scheme.start(jnp.array([1.0, 0.0, 0.0]), velocity=jnp.array([0.0, 0.0, 30.0]))
    outcome = bm.trajectory(scheme, start, step=0.2, steps=3, seed=0).outcome
    assert not outcome.ok
    assert outcome.failures[0].step == 0


def test_what_has_no_constraints_says_so():
    with pytest.raises(BismutError, match="EulerMaruyama does not support constraints"):
        bm.EulerMaruyama(sphere())
    with pytest.raises(BismutError, match="leave nothing"):
        bm.mechanical(bm.Euclidean(2), constraint=lambda q: q)
    with pytest.raises(ShapeError, match="one value g_i"):
        bm.mechanical(bm.Euclidean(2), constraint=lambda q: q[0])


def test_maxwell_momenta_on_constraints():
    """p = P √(kT M) z is tangential, and ⟨p pᵀ⟩ = kT P M Pᵀ: kinetic energy (n − k) kT/2. 20 000 draws; a false alarm has probability 6e−5."""
    scheme = bm.Verlet(triatomic())
    system, point = scheme.system, start_of(scheme).q
    start = scheme.start(point, temperature=0.7)
    draw = lambda i: bm.temperature(system, start.draw(bm.Wiener(4), (i, jnp.zeros_like(i)), point, 0.0))
    values = np.asarray(evaluate(jax.vmap(draw), jnp.arange(20_000, dtype=jnp.uint32)))
    assert abs(values.mean() - 0.7) < 4 * values.std() / np.sqrt(len(values))
