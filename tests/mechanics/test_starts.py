"""A start is data: whoever makes states of it, at whatever time and for whatever masses, keeps the velocity or the temperature that was given."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError
from bismut.findings import certify
from bismut.findings.finding import Verdict
from bismut.findings.order_checks import drift
from bismut.mechanics import start_on
from bismut.mechanics.constraint import nearest_point
from tests.findings.studies import study

T = 5.0


def dragged() -> bm.Action:
    """L = v²/2 + 10 t v, so that p = v + 10 t."""
    return bm.VariationalEuler(bm.System(bm.Euclidean(1), lambda q, v, t: 0.5 * v @ v + 10 * t * v[0]))


@pytest.mark.parametrize("named", [{}, {"t": T}], ids=["the run's time", "its own time"])
@pytest.mark.parametrize("motion", [{"temperature": 1e-12}, {"velocity": np.zeros(1)}], ids=lambda motion: next(iter(motion)))
def test_momenta_are_those_of_the_time_at_which_a_run_begins(motion, named):
    """p = ∂L/∂v(q, v, t0), whoever runs it: 50 at t0 = 5, within five standard deviations of 1e−6."""
    scheme = dragged()
    start, p = scheme.start(np.ones(1), **motion, **named), lambda state: state.p[0]
    run = {"step": 0.01, "steps": 1, "t0": T, "seed": 1}
    simulated = bm.simulate(scheme, start, **run, observe={"p": p}).p.mean.values[0]
    for value in (simulated, bm.trajectory(scheme, start, **run).p[0, 0], bm.average(p, scheme, start, **run)):
        assert float(value) == pytest.approx(10 * T, abs=5e-6)


def test_a_start_for_another_time_is_refused():
    scheme = dragged()
    with pytest.raises(DomainError, match=r"made for t = 5, but the run begins at t0 = 0"):
        bm.simulate(scheme, scheme.start(np.ones(1), velocity=np.ones(1), t=T), step=0.1, steps=1)


def test_the_gradient_with_respect_to_a_state_is_that_of_the_state():
    """A start that is differentiated counts as the state that it is; one that is made of a traced velocity is made for the time of the run."""
    scheme, p = dragged(), lambda state: state.p[0]
    end = lambda start: bm.average(p, scheme, start, step=0.1, steps=1, t0=T)
    start = scheme.start(np.ones(1), velocity=np.ones(1))
    assert float(jax.grad(end)(start).p[0]) == pytest.approx(1.0)
    value, slope = jax.value_and_grad(lambda v: end(scheme.start(np.ones(1), velocity=v[None])))(1.0)
    assert (float(value), float(slope)) == pytest.approx((10 * T + 1.0, 1.0))


def heavy() -> bm.Action:
    mass = lambda q, v, parameters: 0.5 * parameters["m"] * v @ v - 0.5 * q @ q
    return bm.VariationalEuler(bm.System(bm.Euclidean(1), mass, parameters={"m": 1.0}))


def first_momenta(start) -> list[float]:
    """For the masses 1 and 3."""
    run = bm.simulate(heavy(), start, step=0.01, steps=1, sweep={"m": [1.0, 3.0]}, observe={"p": lambda s: s.p[0]})
    return run.p.mean.values[:, 0].tolist()


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda start: pickle.loads(pickle.dumps(start)),
    "tree": lambda start: jax.tree.map(lambda leaf: leaf, start),
    "device": jax.device_put,
    "jit": jax.jit(lambda start: start),
    "with a ledger": lambda start: start_on(heavy(), start, 0.0, ledger=True),
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_start_is_the_start(make):
    """Swept over the mass, momenta follow the velocity v = 1, whichever object holds it."""
    assert first_momenta(make(heavy().start(np.ones(1), velocity=np.ones(1)))) == [1.0, 3.0]


def test_a_momentum_that_was_changed_is_one_that_was_given():
    start = heavy().start(np.ones(1), velocity=np.ones(1))
    assert first_momenta(eqx.tree_at(lambda s: s.p, start, 2.0 * start.p)) == [2.0, 2.0]
    assert first_momenta(bm.State(start.q, start.p)) == [1.0, 1.0]


def test_a_start_on_a_swept_surface_is_projected_onto_each():
    """A pendulum of swept length: every value begins on its own circle."""
    circle = lambda x, parameters: jnp.array([x @ x - parameters["length"] ** 2])
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(2), potential=lambda x: x[1], constraint=circle, parameters={"length": 1.0}))
    lengths = [1.0, 2.0]
    for motion in ({"velocity": np.ones(2)}, {"momentum": np.ones(2)}, {"temperature": 0.5}):
        start = scheme.start(np.array([0.6, -0.8]), project=True, **motion)
        run = bm.simulate(scheme, start, step=0.01, steps=1, sweep={"length": lengths}, observe={"x": lambda s: s.q})
        np.testing.assert_allclose(np.linalg.norm(run.x.mean.values[:, 0], axis=-1), lengths, rtol=1e-12)
    with pytest.raises(DomainError, match="off the constraints"):
        bm.simulate(scheme, bm.State(np.array([0.6, -0.8]), np.zeros(2)), step=0.01, steps=1, sweep={"length": lengths})


def lift(t):
    return 0.3 * jnp.sin(3.0 * t)


def lifted() -> bm.Action:
    """A pendulum in the plane whose pivot goes up and down."""
    circle = lambda x, t: jnp.array([x[0] ** 2 + (x[1] - lift(t)) ** 2 - 1.0])
    return bm.Verlet(bm.mechanical(bm.Euclidean(2), potential=lambda x: x[1], constraint=circle))


@pytest.mark.parametrize("seconds", [20.0, pytest.param(60.0, marks=pytest.mark.slow)], ids=["the last states", "all of it"])
def test_a_certificate_looks_at_the_surface_where_it_is(seconds):
    """g(q, t) at the end of the run, t = t0 + n h, and not at t = 0; and a surface that moves does work, so no law about energy is claimed."""
    scheme, t0 = lifted(), 0.4
    start = scheme.start(np.array([0.6, float(lift(t0)) - 0.8]), velocity=np.zeros(2), t=t0, project=True)
    result = bm.simulate(scheme, start, step=0.01, steps=20, trajectories=2, t0=t0)
    found = {finding.law: finding for finding in certify(result, seconds).findings}
    assert found["constraints"].measured < 1e-12
    assert found["constraints"].verdict == Verdict.passed
    assert not {"energy", "energy drift"} & set(found)
    assert not [law for law, finding in found.items() if finding.verdict == Verdict.failed]
    assert drift(study(scheme, start.state, 0.01)) == []


def test_the_nearest_point_does_not_depend_on_a_momentum_of_rest():
    """M v = Gᵀλ: with L = (1 + t)/2 |v|² + 10 t v₁ the nearest point of a circle is radial at every t, so it is that of t = 0."""
    system = bm.System(
        bm.Euclidean(2), lambda q, v, t: 0.5 * (1 + t) * v @ v + jnp.array([3.0, 0.0]) @ v * t * q[1], constraint=lambda q: jnp.array([q @ q - 1.0])
    )
    for t in (0.0, 2.0):
        point, root = nearest_point(system, jnp.array([0.5, 0.7]), t)
        assert bool(root.converged)
        np.testing.assert_allclose(point, np.array([0.5, 0.7]) / np.hypot(0.5, 0.7), atol=1e-12)


def test_a_bath_is_that_of_the_masses_of_its_time():
    """L = (1 + t) v²/2: p relaxes to the variance kT (1 + t). False-alarm rate 1e−5: 4.4 standard errors of a variance over 4000 trajectories."""
    system = bm.System(bm.Euclidean(1), lambda q, v, t: 0.5 * (1 + t) * v @ v)
    scheme, n, kT = bm.Langevin(system, temperature=0.7, rate=1e4), 4000, 0.7
    run = bm.simulate(scheme, scheme.start(np.zeros(1), momentum=np.zeros(1)), step=1e-3, steps=2, trajectories=n, seed=4, t0=T)
    variance = kT * (1 + T)
    assert abs(np.var(np.asarray(run.final.p)) - variance) < 4.4 * variance * np.sqrt(2 / n)


def test_a_start_keeps_its_velocity_under_transformations():
    """p = v + 10 t0 = 51 for v = 1, whether the start is a constant of the program, its argument or one of a mapped batch; a changed p is given."""
    scheme = dragged()
    end = lambda start: bm.average(lambda state: state.p[0], scheme, start, step=0.1, steps=1, t0=T)
    start = scheme.start(np.ones(1), velocity=np.ones(1))
    several = jax.tree.map(lambda *leaves: jnp.stack(leaves), start, scheme.start(np.ones(1), velocity=2 * np.ones(1)))
    changed = eqx.tree_at(lambda s: s.p, start, 3.0 * start.p)
    assert [float(f(start)) for f in (end, jax.jit(end))] == pytest.approx([51.0, 51.0], rel=1e-14)
    assert jax.vmap(end)(several).tolist() == pytest.approx([51.0, 52.0], rel=1e-14)
    assert [float(f(changed)) for f in (end, jax.jit(end))] == pytest.approx([3.0, 3.0], rel=1e-14)
    assert float(jax.jit(end)(start.state)) == pytest.approx(1.0, rel=1e-14)
    slopes = jax.grad(end)(start)
    assert (float(slopes.p[0]), float(slopes.velocity[0])) == pytest.approx((1.0, 1.0))


def massive(m: float) -> bm.Action:
    return bm.VariationalEuler(bm.System(bm.Euclidean(1), lambda q, v: 0.5 * m * v @ v))


def test_a_start_of_another_scheme_gets_the_masses_of_the_one_that_runs():
    """kT stays 1 as masses grow from 1 to 25, and a velocity stays 1 as they grow to 3: whoever runs, a start is what its own scheme makes of it."""
    run = {"step": 0.01, "steps": 1, "seed": 3}
    for light, heavier in ((massive(1.0), massive(25.0)), (heavy(), bm.VariationalEuler(heavy().system.with_parameters({"m": 3.0})))):
        for motion in ({"temperature": 1.0}, {"velocity": np.ones(1)}):
            theirs, own = (scheme.start(np.ones(1), **motion) for scheme in (light, heavier))
            if type(theirs) is bm.State:
                continue  # a momentum, of which nobody knows what it was made from
            many = lambda start, scheme=heavier: bm.simulate(scheme, start, trajectories=20, **run).final.p
            np.testing.assert_array_equal(many(theirs), many(own))
            mean = lambda start, scheme=heavier: bm.average(lambda s: s.p[0], scheme, start, **run)
            assert float(mean(theirs)) == float(mean(own)) == pytest.approx(float(jax.jit(mean)(theirs)), rel=1e-12)


@pytest.mark.parametrize("measure", [bm.verify, bm.advise_step])
def test_measurements_from_zero_say_so(measure):
    """They have no t0, so none is asked for."""
    scheme = dragged()
    with pytest.raises(DomainError, match=r"made for t = 5.*from t = 0: make the start without t\.") as refused:
        measure(scheme, scheme.start(np.ones(1), velocity=np.ones(1), t=T), step=0.1)
    assert "t0=" not in str(refused.value)
