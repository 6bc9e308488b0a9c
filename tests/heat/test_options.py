"""An option is used or refused: two values of it give two different steps, or an error, for every option of every scheme."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut import _api
from bismut.compile_cache import partition, program_key
from bismut.errors import BismutError, DomainError
from bismut.flows.splitting import Splitting, WordSplitting
from bismut.mechanics import Scheme
from bismut.programs.evaluation import evaluate

top = bm.mechanical(bm.SO2(), mass=1.3, potential=lambda R: R[0, 1] + 0.3 * R[0, 0] ** 2)
shaken = bm.mechanical(bm.SO2(), mass=1.3, potential=lambda R: R[0, 1], noise=lambda R: R[0, :1])
free = bm.mechanical(bm.SO2(), mass=1.3)
own = lambda retraction: lambda system: bm.Verlet(system, retraction=retraction)
bath = lambda splitting=bm.BAOAB, **options: bm.Langevin(top, **({"temperature": 0.7, "friction": 0.8} | options), splitting=splitting)
SPLITTINGS = (bm.BAOAB, bm.ABOBA, bm.OBABO, bm.GLA(bm.Verlet), bm.Metropolised())


def scalar(q0, q1, h, dW):
    return 0.65 * bm.SO2("exp").subtract(q1, q0) ** 2 / h - h * q0[0, 1]


# What an option is changed between, for every option but the system itself.
PAIRS = {
    (bm.VariationalEuler, "end"): lambda end: bm.VariationalEuler(shaken, end=end),
    (bm.VariationalEuler, "retraction"): lambda retraction: bm.VariationalEuler(shaken, retraction=retraction),
    (bm.Midpoint, "retraction"): lambda retraction: bm.Midpoint(shaken, retraction=retraction),
    (bm.Verlet, "retraction"): lambda retraction: bm.Verlet(shaken, retraction=retraction),
    (bm.HamiltonianEuler, "end"): lambda end: bm.HamiltonianEuler(shaken, end=end),
    (bm.HamiltonianEuler, "retraction"): lambda retraction: bm.HamiltonianEuler(shaken, retraction=retraction),
    (bm.HamiltonianMidpoint, "retraction"): lambda retraction: bm.HamiltonianMidpoint(shaken, retraction=retraction),
    (bm.HamiltonianVerlet, "retraction"): lambda retraction: bm.HamiltonianVerlet(shaken, retraction=retraction),
    (bm.Reduced, "of"): lambda retraction: bm.Reduced(bm.Verlet(bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5]), retraction=retraction)),
    (bm.Langevin, "temperature"): lambda kT: bath(temperature=kT),
    (bm.Langevin, "friction"): lambda friction: bath(friction=friction),
    (bm.Langevin, "rate"): lambda rate: bath(friction=None, rate=rate),
    (bm.Langevin, "schedule"): lambda schedule: bath(schedule=schedule),
    (bm.Langevin, "retraction"): lambda retraction: bath(retraction=retraction),
    (bm.Langevin, "splitting"): bath,
    (bm.GLA, "action"): lambda retraction: bath(bm.GLA(own(retraction))),
    (bm.Metropolised, "action"): lambda retraction: bath(bm.Metropolised(own(retraction))),
    (bm.Langevin, "transport"): lambda transport: bath(transport=transport),
    (WordSplitting, "name"): lambda name: bath(WordSplitting(name)),
    (WordSplitting, "word"): lambda word: bath(WordSplitting("own", word=word)),
    (WordSplitting, "loss"): lambda loss: bath(WordSplitting("BAOAB", loss=loss)),
    (WordSplitting, "rescaled"): lambda rescaled: bath(WordSplitting("BAOAB", rescaled=rescaled)),
    (bm.Brownian, "temperature"): lambda kT: bm.Brownian(top, kT),
    (bm.Brownian, "mobility"): lambda mobility: bm.Brownian(top, 0.7, mobility),
    (bm.Brownian, "metropolised"): lambda metropolised: bm.Brownian(top, 0.7, metropolised=metropolised),
    (bm.Brownian, "retraction"): lambda retraction: bm.Brownian(top, 0.7, retraction=retraction or "cayley"),
}
VALUES = {
    "end": ("left", "right"),
    "retraction": (None, "exp"),
    "of": ("cayley", "exp"),
    "action": ("cayley", "exp"),
    "temperature": (0.7, 0.9),
    "friction": (0.8, 0.9),
    "rate": (0.8, 0.9),
    "schedule": (None, lambda t: 1.5),
    "splitting": (bm.BAOAB, bm.GLA(bm.Verlet)),
    "transport": (None, "exact"),
    "name": ("BAOAB", "ABOBA"),
    "word": ("BAOAB", "ABOBA"),
    "loss": (None, bm.GJI.loss),
    "rescaled": (False, True),
    "mobility": (0.8, 0.9),
    "metropolised": (False, True),
}
# Seen otherwise: a discrete Lagrangian, whose retraction is the coordinate in which q1 is sought and moves nothing; the spherical midpoint, the
# same for every retraction (tests/reduced); and what a word says of itself.
ELSEWHERE = {(bm.Discrete, name) for name in ("space", "S_d", "channels", "retraction", "precision", "forces")} | {
    (bm.SphericalMidpoint, "retraction"),
    (WordSplitting, "description"),
    (bm.Langevin, "own_noise"),  # changes what is said, not the step: test_warnings.py
}
# Those of volume moves, between which the box of a gas after some steps is another.
GAS = bm.mechanical(bm.Euclidean(3) ** 4, potential=0.0 * bm.lennard_jones(cutoff=0.4), box=2.0)
VOLUME_MOVES = {
    "scheme": (bm.Langevin(GAS, 1.0, rate=1.0), bm.Brownian(GAS, 2.0)),
    "pressure": (0.5, 5.0),
    "every": (1, 2),
    "size": (0.2, 0.3),
    "adapt": (0, 40),
    "axes": (None, (0, 1, 2)),
    "limits": ((0.5, 9.0), (0.98, 1.02)),
}


_KNOWN: dict = {}


def after(scheme) -> np.ndarray:
    """The state after one step, as one vector, whatever the scheme moves by; of the same scheme with the same numbers it is known."""
    numbers, _ = partition(scheme)
    name = program_key(scheme), tuple(np.asarray(number).tobytes() for number in numbers)
    if name not in _KNOWN:
        _KNOWN[name] = _after(scheme)
    return _KNOWN[name]


def _after(scheme) -> np.ndarray:
    space = scheme.space.using("exp")
    state = bm.State(space.origin(), space.unflatten(jnp.linspace(0.9, 1.2, space.dim)))

    def step(dW):
        new, solve = bm.flows.flow(scheme).advance(state, 0.4, dW, 0.0)
        return jnp.concatenate([space.flatten(space.subtract(new.q, state.q)), space.flatten(new.p)]), solve.converged

    moved, solved = evaluate(step, jnp.linspace(0.2, 0.3, scheme.channels))
    assert solved
    return np.asarray(moved)


def test_every_option_is_looked_at():
    """A new option of a scheme, or a new scheme, belongs into this file."""
    schemes = {thing for thing in vars(_api).values() if inspect.isclass(thing) and issubclass(thing, Scheme | Splitting)} | {WordSplitting}
    options = {
        (scheme, name)
        for scheme in schemes - {bm.Action, bm.DiscreteHamiltonian}
        for name in inspect.signature(scheme).parameters
        if name != "system"
    }
    assert options == set(PAIRS) | ELSEWHERE | {(bm.Isobaric, name) for name in VOLUME_MOVES}


@pytest.mark.parametrize(("scheme", "option"), PAIRS, ids=lambda case: getattr(case, "__name__", case))
def test_an_option_changes_the_step(scheme, option):
    one, other = (after(PAIRS[scheme, option](value)) for value in VALUES[option])
    assert np.abs(one - other).max() > 1e-4


@pytest.mark.parametrize("option", VOLUME_MOVES)
def test_an_option_changes_the_box(option):
    def box(value):
        options = {"scheme": VOLUME_MOVES["scheme"][0], "pressure": 1.0, "every": 1, "size": 0.25, "limits": (0.5, 9.0)} | {option: value}
        scheme = bm.Isobaric(**options)
        start = scheme.start(jnp.linspace(0.0, 1.9, 12).reshape(4, 3), momentum=jnp.zeros((4, 3)))
        return np.asarray(bm.simulate(scheme, start, step=0.1, steps=40, seed=3, observe={"box": bm.box_lengths}).box.mean)[-1]

    one, other = map(box, VOLUME_MOVES[option])
    assert np.abs(one - other).max() > 1e-4


@pytest.mark.parametrize("splitting", SPLITTINGS[1:], ids=str)
def test_every_splitting_moves_by_the_retraction(splitting):
    """exp given once, by the bath or by the space, is one step; and it is another than Cayley's."""
    one, other = after(bath(splitting)), after(bath(splitting, retraction="exp"))
    assert np.abs(one - other).max() > 1e-4
    by_space = after(bm.Langevin(top.using("exp"), 0.7, 0.8, splitting))
    assert np.allclose(other, by_space, atol=1e-14)


@pytest.mark.parametrize("option", ["temperature", "friction", "schedule"])
@pytest.mark.parametrize("splitting", [pytest.param(splitting, marks=pytest.mark.slow) for splitting in SPLITTINGS[1:]], ids=str)
def test_every_splitting_uses_every_option(splitting, option):
    one, other = (after(bath(splitting, **{option: value})) for value in VALUES[option])
    assert np.abs(one - other).max() > 1e-4


@pytest.mark.parametrize("make", [bm.GLA, bm.Metropolised])
def test_two_retractions_are_one_too_many(make):
    with pytest.raises(BismutError, match="Omit one of the two"):
        bath(make(own("cayley")), retraction="exp")
    assert bath(make(own("exp")), retraction="exp").space == bm.SO2("exp")


class Line(bm.Space):
    """ℝ with one way to move."""

    def origin(self, dtype=float):
        return jnp.zeros((), dtype)

    zero = origin

    def move(self, q, velocity, time=1.0):
        return q + time * velocity

    def subtract(self, q1, q0):
        return q1 - q0


@pytest.mark.parametrize("make", [bm.Verlet, lambda system, **options: bm.Langevin(system, 1.0, 1.0, **options)], ids=["Verlet", "Langevin"])
def test_retractions_that_do_not_exist(make):
    """Neither an unknown name anywhere nor a known one on a space that has no choice is let through. On ℝⁿ all retractions are the addition."""
    flat = bm.mechanical(bm.Euclidean(2), potential=lambda q: q @ q)
    for system in (flat, top):
        with pytest.raises(BismutError, match="no retraction 'expo'"):
            make(system, retraction="expo")
    with pytest.raises(BismutError, match="one way to move"):
        make(bm.System(Line(), lambda q, v: 0.5 * v * v), retraction="exp")
    assert make(flat, retraction="exp").space == bm.Euclidean(2)


def test_a_discrete_lagrangian():
    make = lambda **options: bm.Discrete(bm.SO2(), scalar, **options)
    assert make(channels=2).channels == 2
    assert make(retraction="exp").space == bm.SO2("exp")
    assert np.allclose(after(make(retraction="exp")), after(make()), atol=1e-9)
    with pytest.raises(BismutError, match="S_d has channels"):
        make(channels=2, system=top)
    with pytest.raises(BismutError, match="belongs to the system"):
        make(precision="float32", system=top)


@pytest.mark.parametrize("name", ["rate", "friction"])
def test_a_quantity_with_a_unit_is_told_how_to_become_a_number(name):
    with pytest.raises(DomainError, match=rf"{name} must be numbers, got '1/ps'\..*units"):
        bm.Langevin(bm.mechanical(bm.Euclidean(1)), temperature=1.0, **{name: "1/ps"})
    with pytest.raises(DomainError, match=r"temperature must be one number kT, got '300 K'\..*units"):
        bm.Verlet(bm.mechanical(bm.Euclidean(1))).start([0.0], temperature="300 K")
