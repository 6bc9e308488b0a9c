"""Wrong input is refused at once: what was expected, what was given, what to do."""

import jax
import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.errors import BismutError, DomainError, ShapeError
from tests import systems


@pytest.fixture(scope="module")
def scheme():
    return bm.VariationalEuler(systems.heavy_top())


@pytest.fixture(scope="module")
def start(scheme):
    return scheme.start(jnp.eye(3), velocity=jnp.ones(3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"step": -0.1}, "adjoint"),
        ({"step": 0.0}, "positive"),
        ({"sweep": {"weight": [1.0, float("nan")]}}, "finite numbers"),
        ({"step": float("nan")}, "positive"),
        ({"steps": 0}, "steps must be a whole number ≥ 1"),
        ({"trajectories": 0}, "trajectories must be"),
        ({"every": 0}, "every must be"),
        ({"seed": -1}, "seed must be"),
        ({"mode": "fast"}, '"native"'),
        ({"on_failure": "ignore"}, '"raise"'),
        ({"observe": {"x": lambda state: state.q @ jnp.ones(4)}}, "observe\\['x'\\] fails"),
        ({"observe": {"x": lambda state: state}}, "must return one array"),
        ({"observe": {"x": lambda state: jax.random.key(0)}}, "must return numbers, got random keys"),
        ({"observe": {"x": bm.momentum("vertikal")}}, "Did you mean 'vertical'"),
        *(({"observe": {name: bm.energy}}, "cannot be called") for name in ("", " ", ".", "a/b", "final")),
        *(({"t0": t0}, "t0 must be one finite number") for t0 in (float("nan"), float("inf"))),
        ({"observe": {"x": bm.time_average(bm.energy, every=3)}}, "looks every 3 steps, but the run has 2"),
    ],
)
def test_run_is_refused(scheme, start, change, words):
    settings = {"step": 0.1, "steps": 2, "trajectories": 2} | change
    with pytest.raises(BismutError, match=words):
        bm.simulate(scheme, start, **settings)


def test_what_is_no_scheme_is_named(scheme, start):
    for what, words in ((scheme.system, "got System"), (bm.Verlet, "got the class Verlet")):
        with pytest.raises(DomainError, match=words):
            bm.simulate(what, start, step=0.1, steps=2)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"q": jnp.array([1.0, 0, 0, 0]), "velocity": jnp.ones(3)}, ShapeError, "from_quaternion"),
        ({"q": jnp.full((3, 3), jnp.nan), "velocity": jnp.ones(3)}, DomainError, "not finite"),
        ({"q": 1.1 * jnp.eye(3), "velocity": jnp.ones(3)}, DomainError, "project"),
        ({"q": jnp.eye(3), "velocity": jnp.ones(4)}, ShapeError, "start.velocity has shape \\(4,\\)"),
        ({"q": jnp.eye(3), "momentum": jnp.full(3, jnp.inf)}, DomainError, "not finite"),
        ({"q": jnp.eye(3), "temperature": -1.0}, DomainError, "temperature must be positive"),
        ({"q": jnp.eye(3)}, BismutError, "needs one of velocity=, momentum=, temperature="),
        ({"q": jnp.eye(3), "velocity": jnp.ones(3), "momentum": jnp.ones(3)}, BismutError, "velocity and momentum"),
    ],
)
def test_start_is_refused(scheme, arguments, error, words):
    with pytest.raises(error, match=words):
        scheme.start(arguments.pop("q"), **arguments)


@pytest.mark.parametrize("name", ["time", "mean", "count", "q0", "p", "trajectory", "stderr"])
def test_a_parameter_called_like_an_axis_is_not_swept(name):
    """Reports have axes and arrays of these names; the collision would show only when the run is over and its results are put together."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: parameters[name] * q[0] ** 2, parameters={name: 1.0})
    scheme = bm.Verlet(system)
    with pytest.raises(DomainError, match=f"called '{name}' cannot be swept"):
        bm.simulate(scheme, scheme.start([1.0], velocity=[0.0]), step=0.1, steps=2, sweep={name: [1.0, 2.0]})


def test_batch_of_wrong_length_is_refused(scheme):
    batch = scheme.start(jnp.stack([jnp.eye(3)] * 3), velocity=jnp.ones(3))
    with pytest.raises(DomainError, match="one for each trajectory"):
        bm.simulate(scheme, batch, step=0.1, steps=2, trajectories=4)


def test_start_must_be_a_state(scheme):
    with pytest.raises(ShapeError, match=r"scheme\.start"):
        bm.simulate(scheme, jnp.eye(3), step=0.1, steps=2)


def test_unknown_observable_is_refused(scheme, start):
    result = bm.simulate(scheme, start, step=0.1, steps=2)
    with pytest.raises(AttributeError, match="Did you mean 'energy'"):
        result.enegry  # noqa: B018


@pytest.mark.parametrize(("precision", "step"), [("float32", 0.01), ("float64", 1e-11)])
def test_a_step_that_is_lost_in_the_time_is_refused(precision, step):
    """Times near 1e6 are 0.0625 apart in float32, and 1.2e−10 in float64."""
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: q @ q, precision=precision))
    start, run = scheme.start(jnp.ones(1), velocity=jnp.ones(1)), {"steps": 2, "t0": 1e6}
    for call in (bm.simulate, bm.trajectory, lambda *given, **how: bm.average(bm.energy, *given, **how)):
        with pytest.raises(DomainError, match=f"t0 = 1e\\+06 is too large for steps of {step:g}: in {precision}"):
            call(scheme, start, step=step, **run)


def test_a_run_goes_on_with_a_scheme_of_its_own_space():
    of = lambda n, **how: bm.Verlet(bm.mechanical(bm.Euclidean(n), potential=lambda q: q @ q, **how))
    one = of(1)
    result = bm.simulate(one, one.start(jnp.ones(1), velocity=jnp.ones(1)), step=0.1, steps=2)
    for other, words in ((of(3), r"final.q .*shape"), (of(1, precision="float32"), "is float64, but the system works in float32")):
        with pytest.raises(ShapeError, match=f"continue_from.*{words}"):
            bm.simulate(other, continue_from=result, steps=2)
