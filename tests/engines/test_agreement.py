"""The two engines agree: on every gallery system, scheme, bath and constraint, and on who fails where.

|z_native − z_xla| ≤ 1e−9 (1 + |z|) after 50 steps: round-off that fifty steps of these systems have multiplied
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.engines.native import engine
from bismut.ensembles import task
from bismut.gallery import entries
from tests import systems
from tests.constraints import systems as constrained

SMALLER = {"sine-euler": {"modes": 4}, "water": {"molecules": 8}}  # long steps of matrix products are left to XLA


def _gallery(name):
    found = entries()[name]
    scheme = found.scheme(found.build(**SMALLER.get(name, {})))
    return scheme, found.start(scheme), found.step


def _free(name, kind):
    scheme = kind(systems.ALL[name]())
    return scheme, systems.random_state(scheme.system), 0.02


def _constrained(name, kind):
    scheme = kind(constrained.ALL[name]())
    return scheme, constrained.start_of(scheme), 0.02


def _bath(system, name):
    """Friction of its own beside the system's noise; under acceptance the friction that balances it."""
    friction = {} if name == "Metropolised" else {"friction": 0.8}
    return bm.Langevin(system, temperature=0.7, splitting=BATHS[name], **friction)


BATHS = {"BAOAB": bm.BAOAB, "ABOBA": bm.ABOBA, "OBABO": bm.OBABO, "GLA": bm.GLA(bm.Verlet), "Metropolised": bm.Metropolised()}

CASES = {
    **{f"gallery: {name}": lambda name=name: _gallery(name) for name in entries()},
    **{
        f"{name}, {kind.__name__}": lambda n=name, k=kind: _free(n, k)
        for name in systems.ALL
        for kind in (bm.VariationalEuler, bm.Midpoint, bm.Verlet)
    },
    **{f"{name}, {k.__name__}": lambda n=name, k=k: _constrained(n, k) for name in constrained.ALL for k in (bm.VariationalEuler, bm.Verlet)},
    **{f"{name}, {bath}": lambda n=name, b=bath: _free(n, lambda system: _bath(system, b)) for name in ("separable", "heavy_top") for bath in BATHS},
}
# XLA compiles each of these for seconds; the others are of make measure.
SHORT = (
    "gallery: double-well",
    "gallery: spherical-pendulum",
    "plane, Midpoint",
    "nine_noises, VariationalEuler",
    "heavy_top, BAOAB",
    "separable, Metropolised",
    "sphere, Verlet",
)


@cache
def prepared(name):
    """One scheme for all tests, so that it is traced once."""
    return CASES[name]()


def _run(name, mode, **settings):
    scheme, start, step = prepared(name)
    return bm.simulate(scheme, start, step=step, trajectories=3, seed=5, mode=mode, progress=False, **settings)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in SHORT else pytest.mark.slow) for name in CASES])
def test_both_engines_go_the_same_way(name):
    native, xla = (_run(name, mode, steps=50) for mode in ("native", "xla"))
    assert native.provenance.mode == "native"
    assert native.outcome.failures == xla.outcome.failures
    for a, b in zip(jax.tree.leaves(native.final), jax.tree.leaves(xla.final), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["gallery: pendulum", "heavy_top, BAOAB", "plane, Midpoint", "nine_noises, VariationalEuler"])
def test_a_run_cut_anywhere_is_the_whole_run_to_the_bit(name):
    whole = _run(name, "native", steps=23)
    for cut in (1, 6, 15):
        first = _run(name, "native", steps=cut)
        rest = bm.simulate(prepared(name)[0], steps=23 - cut, continue_from=first, mode="native", progress=False)
        assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(rest.final), jax.tree.leaves(whole.final), strict=True))


def test_both_engines_name_the_same_failures():
    """A potential that runs away: some trajectories fail, each at its own step; and an equation without a root."""
    away = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: -(q[0] ** 4), noise=lambda q: 0.7 * q))
    rootless = bm.Midpoint(bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.exp(q[0] ** 2), noise=lambda q: 2.0 * q))
    for scheme, steps in ((away, 60), (rootless, 12)):
        start = scheme.start(jnp.array([0.3]), velocity=jnp.zeros(1))
        settings = {"step": 0.1, "steps": steps, "trajectories": 40, "seed": 3, "progress": False}
        native, xla = (bm.simulate(scheme, start, mode=mode, **settings) for mode in ("native", "xla"))
        where = [[(f.trajectory, f.step) for f in run.outcome.failures] for run in (native, xla)]
        assert where[0] == where[1]
        assert 3 < len(where[0]) <= 40
        assert len({step for _, step in where[0]}) > 1


def _forget():
    """Programs are made anew."""
    task._PLANS._values.clear()
    task._PROGRAMS._values.clear()


@pytest.mark.parametrize("width", [4, 16])
def test_a_run_has_the_same_bits_at_every_width(width, monkeypatch):
    eight = _run("heavy_top, BAOAB", "native", steps=20)
    monkeypatch.setattr(engine, "WIDTHS", {"float64": width, "float32": width})
    _forget()
    other = _run("heavy_top, BAOAB", "native", steps=20)
    _forget()
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(eight.final), jax.tree.leaves(other.final), strict=True))


def test_what_observers_find_does_not_depend_on_the_width(monkeypatch):
    """Sums, lags and counts that are kept in the machine loop: the same bits, and by XLA the same numbers. 53 looks are no multiple of anything."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: 1 - jnp.cos(q[0]))
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    start, x = scheme.start(jnp.zeros(1), velocity=jnp.ones(1)), lambda state: state.p[0]
    observe = {"average": bm.time_average(x), "lags": bm.autocorrelation(x, lags=21), "counts": bm.histogram(x, range=(-2, 2), bins=30)}
    found = {}
    for width, mode in ((8, "native"), (4, "native"), (16, "native"), (8, "xla")):
        monkeypatch.setattr(engine, "WIDTHS", {"float64": width, "float32": width})
        _forget()
        result = bm.simulate(scheme, start, step=0.1, steps=53, every=1, trajectories=37, seed=5, observe=observe, mode=mode, progress=False)
        average, lags, counts = (result[name] for name in observe)
        found[width, mode] = [x.values for x in (average.mean, average.block_stderr, lags.covariance, counts.counts)]
    _forget()
    for other in ((4, "native"), (16, "native")):
        assert all(np.array_equal(a, b) for a, b in zip(found[8, "native"], found[other], strict=True))
    for a, b in zip(found[8, "native"], found[8, "xla"], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
