"""An observer that cannot be is refused before anything runs: what was expected, what was given, what to do."""

import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.errors import BismutError
from tests import systems

X = lambda state: state.q[0]


@pytest.fixture(scope="module")
def scheme():
    return bm.VariationalEuler(systems.separable())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bm.histogram(X, range=(1.0, -1.0)), "low < high"),
        (lambda: bm.histogram(X, range=(-1.0, 1.0), bins=0), "bins must be"),
        (lambda: bm.histogram((X, X, X), range=((0, 1),) * 3), "or two of them"),
        (lambda: bm.quantiles(X, levels=(0.5, 1.5)), "between 0 and 1"),
        (lambda: bm.autocorrelation(X, lags=0), "lags must be"),
        (lambda: bm.mean_squared_displacement(lags=-1), "lags must be"),
        (lambda: bm.section(X, at=X, direction=2), "direction must be"),
        (lambda: bm.paths([0, 0]), "different trajectory numbers"),
    ],
)
def test_at_once(make, words):
    with pytest.raises(BismutError, match=words):
        make()


@pytest.mark.parametrize(
    ("observer", "words"),
    [
        (bm.section(lambda s: s.q, at=X), "must be one number"),
        (bm.histogram((lambda s: s.q, X), range=((0, 1), (0, 1))), "needs numbers"),
        (bm.mean_squared_displacement(lambda v: v[5]["x"]), "part fails"),
        (bm.Observer(init=lambda s: jnp.zeros(2), update=lambda m, s: m[:1]), "must return a memory like"),
        (bm.Observer(init=lambda s: s.q @ jnp.ones(4), update=lambda m, s: m), "fails on a state"),
        (bm.Observer(init=lambda s: (s.q, s.p), update=lambda m, s: m), "must return one array"),
    ],
)
def test_with_the_scheme(scheme, observer, words):
    with pytest.raises(BismutError, match=words):
        bm.simulate(scheme, systems.random_state(scheme.system), step=0.1, steps=2, observe={"it": observer})


def test_explain_says_which_engine_and_why(scheme):
    assert "by the engine" in bm.explain(scheme)
