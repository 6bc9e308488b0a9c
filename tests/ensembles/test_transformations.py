"""JAX's transformations work, or are refused in a sentence that says what to use."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from bismut.programs.evaluation import evaluate
from tests.ensembles.test_run import scheme

X = lambda state: state.q[0]


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, lambda f: lambda x: jax.vmap(f)(x[None])], ids=["jit", "grad", "vmap"])
def test_simulate_refuses_in_a_sentence(transform):
    one = scheme()

    def final(q):
        return bm.simulate(one, bm.State(q * jnp.ones(1), jnp.zeros(1)), step=0.1, steps=2).final.q[0, 0]

    with pytest.raises(BismutError, match=r"bm\.average .* bm\.trajectory"):
        transform(final)(jnp.asarray(0.3))


def test_simulate_refuses_inside_jit_even_of_constants():
    with pytest.raises(BismutError, match=r"bm\.average"):
        jax.jit(lambda: bm.simulate(scheme(), bm.State(jnp.ones(1), jnp.zeros(1)), step=0.1, steps=2).times)()


def test_average_from_a_traced_start():
    """One state, or one for each trajectory: along one step of an oscillator the derivative by the start is 1 − h² for both."""
    oscillator = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * jnp.sum(q**2)))
    mean = lambda start: bm.average(X, oscillator, start, step=0.1, steps=1, trajectories=3)
    one = evaluate(jax.grad(lambda q: mean(bm.State(q * jnp.ones(1), jnp.zeros(1)))), 0.4)
    each = evaluate(jax.grad(lambda q: mean(bm.State(q[:, None], jnp.zeros((3, 1))))), np.full(3, 0.4))
    assert float(one) == pytest.approx(0.99, rel=1e-12)
    np.testing.assert_allclose(each, 0.33, rtol=1e-12)


def test_a_mapped_trajectory_shows_itself():
    one = scheme()
    follow = lambda q: bm.trajectory(one, bm.State(q * jnp.ones(1), jnp.zeros(1)), step=0.1, steps=4)
    many = evaluate(jax.vmap(follow), np.array([0.1, 0.2, 0.3]))
    assert repr(many).startswith("Trajectory(3 trajectories of 5 states, 0 failed; ")


def test_a_path_that_was_donated_takes_no_other_with_it():
    """Arrays of a seed are those of one path; where JAX has taken them, the next run makes its own."""
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: q @ q, noise=lambda q: q))
    go = lambda: bm.simulate(scheme, scheme.start(jnp.ones(1), velocity=jnp.zeros(1)), step=0.1, steps=2, seed=7, trajectories=2)
    first, other = go(), bm.Wiener(7)
    taken = jax.jit(lambda path: jax.tree.map(lambda x: x + 1, path), donate_argnums=0)
    taken(bm.Wiener(7)), taken(first.request.path)
    assert (other.seed_number, bm.Wiener(8).shifted_by) == (7, 0)
    assert np.array_equal(go().final.q, first.final.q)
