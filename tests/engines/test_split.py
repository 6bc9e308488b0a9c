"""An observer that the native engine has no code for does not move the steps to XLA: states are recorded, and XLA looks at them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles import request


def called(function, x):
    """A call of Python, for which there never is machine code."""
    return jax.pure_callback(function, jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)), x, vmap_method="expand_dims")


@jax.custom_jvp
def cosine(x):
    return called(np.cos, x)


cosine.defjvps(lambda d, y, x: -called(np.sin, x) * d)
plain = lambda state: jnp.cos(state.q[0])
odd = lambda state: cosine(state.q[0])
RUN = {"step": 0.02, "steps": 45, "every": 10, "burn_in": 3, "trajectories": 37, "seed": 1}


def well() -> bm.Action:
    return bm.Verlet(bm.mechanical(bm.Euclidean(2), potential=lambda q: jnp.sum(q**4), noise=lambda q: q))


def observers(of):
    """Without memory and with one; every one of them at other steps."""
    return {
        "mean": of,
        "energy": bm.energy,
        "average": bm.time_average(of, every=3),
        "histogram": bm.histogram(of, range=(-1.0, 1.0), bins=4, every=5),
        "values": bm.values(of),
    }


def simulated(of, **other) -> bm.Result:
    scheme = well()
    return bm.simulate(scheme, scheme.start(np.ones(2), temperature=0.5), observe=observers(of), **RUN | other)


def test_results_are_those_of_one_engine():
    """To round-off, for every observer, with looks at the start, in between and out of turn at the end; steps and native observers to the bit."""
    native, split = simulated(plain), simulated(odd)
    assert (split.provenance.mode, split.provenance.note.split(" because ")[0]) == (
        "native",
        "mean, average, histogram, values computed by XLA from recorded states,",
    )
    for name in observers(odd):
        for kind, (axes, values) in native[name].variables.items():
            assert axes == split[name].variables[kind][0]
            np.testing.assert_allclose(np.asarray(split[name].variables[kind][1], float), np.asarray(values, float), rtol=1e-12, atol=1e-13)
    for a, b in zip(jax.tree.leaves(native.final), jax.tree.leaves(split.final), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(native.energy.mean.values, split.energy.mean.values)


def test_a_run_that_was_cut_goes_on_to_the_bit(tmp_path):
    """Memories of both engines are kept in a checkpoint."""
    whole = simulated(odd, burn_in=0, steps=60)
    simulated(odd, burn_in=0, steps=30, store=tmp_path / "run")
    longer = simulated(odd, burn_in=0, steps=60, store=tmp_path / "run", extend=True)
    for name in ("mean", "average", "histogram", "values"):
        for kind, (_, values) in whole[name].variables.items():
            assert np.array_equal(longer[name].variables[kind][1], values, equal_nan=True), (name, kind)


def test_failures_are_told_as_ever():
    """A trajectory that leaves the numbers is excluded, by the same step."""
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.sum(q**4)))
    start = scheme.start(np.array([[1.0], [0.1]]), velocity=np.ones((2, 1)))
    runs = [bm.simulate(scheme, start, step=0.1, steps=100, observe={"f": of}) for of in (plain, odd)]
    assert repr(runs[0].outcome.failures) == repr(runs[1].outcome.failures)  # residuals are NaN where a step was solved
    assert not runs[0].outcome.ok
    np.testing.assert_allclose(runs[1].f.mean.values, runs[0].f.mean.values, rtol=1e-12)


def test_who_computes_what_is_said():
    """In the header of a result and in a dry run, and nowhere if the native engine computes everything."""
    scheme = well()
    start = scheme.start(np.ones(2), velocity=np.zeros(2))
    run = {"step": 0.1, "steps": 2}
    assert "XLA" not in repr(bm.simulate(scheme, start, **run))
    found = bm.simulate(scheme, start, observe={"odd": odd, "energy": bm.energy}, **run)
    line = "odd computed by XLA from recorded states, because "
    assert f"\n  {line}" in repr(found)
    assert line in found._repr_html_()
    assert line in repr(bm.simulate(scheme, start, observe={"odd": odd}, dry_run=True, **run))
    steep = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: cosine(q[0])))
    told = repr(bm.simulate(steep, steep.start(np.ones(1), velocity=np.zeros(1)), **run))
    assert "\n  computed by XLA in place of the native engine, because " in told
    assert "computed by XLA in place" not in repr(bm.simulate(scheme, start, mode="xla", **run))


def test_a_request_travels_with_its_engines():
    """A worker chooses again, and splits again."""
    scheme = well()
    made = request(scheme, scheme.start(np.ones(2), velocity=np.zeros(2)), step=0.1, steps=2, observe={"odd": odd})
    assert made.engine_plan.lowered.observers
    again = object.__new__(type(made))
    vars(again).update(made.__getstate__())
    assert again.engine_plan.lowered.observers


@pytest.mark.parametrize("count", [1, 17])
def test_looks_do_not_depend_on_how_many_are_recorded_at_a_time(count, monkeypatch):
    """A call that records states in several parts gives the rows of one."""
    simulate = lambda: simulated(odd, trajectories=count).values.value.values
    whole = simulate()
    monkeypatch.setattr("bismut.engines.split._BYTES", 1)
    assert np.array_equal(simulate(), whole)
