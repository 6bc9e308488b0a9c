"""A wrong argument is refused at the door: the error is ours, and it names the argument.

a call with one wrong argument   ↦   BismutError("… must be …, got ….")
"""

import inspect
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import bismut as bm
from bismut import arguments
from bismut.errors import BismutError

SYSTEM = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: parameters["k"] * q[0] ** 2, parameters={"k": 1.0})
SCHEME = bm.Langevin(SYSTEM, temperature=1.0, friction=1.0)
START = SCHEME.start([1.0], velocity=[0.0])
X = lambda state: state.q[0]
LONG = "n" * 300


def simulate(**change):
    return lambda: bm.simulate(SCHEME, **({"start": START, "step": 0.1, "steps": 4, "trajectories": 2, "progress": False} | change))


def trajectory(**change):
    return lambda: bm.trajectory(SCHEME, **({"start": START, "step": 0.1, "steps": 4} | change))


def average(**change):
    return lambda: bm.average(**({"of": bm.energy, "scheme": SCHEME, "start": START, "step": 0.1, "steps": 4} | change))


def verify(**change):
    return lambda: bm.verify(SCHEME, **({"start": START, "step": 0.1, "order": False, "budget": 0} | change))


def advise(**change):
    return lambda: bm.advise_step(SCHEME, **({"start": START, "step": 0.1, "budget": 1} | change))


@cache
def small_result():
    return simulate(observe={"energy": bm.energy})()


# What is named in the error, and the call.
CALLS = [
    ("step", simulate(step="0.1")),
    ("step", simulate(step=None)),
    ("step", simulate(step=[0.1, 0.2])),
    ("step", simulate(step=1j)),
    ("step", simulate(step=True)),
    ("step", simulate(step=object())),
    ("steps", simulate(steps="4")),
    ("steps", simulate(steps=4.0)),
    ("steps", simulate(steps=True)),
    ("steps", simulate(steps=None)),
    ("steps", simulate(steps=2**30)),
    ("trajectories", simulate(trajectories="2")),
    ("trajectories", simulate(trajectories=2.0)),
    ("trajectories", simulate(trajectories=2**64)),
    ("seed", simulate(seed="7")),
    ("seed", simulate(seed=1.5)),
    ("seed", simulate(seed=True)),
    ("seed", simulate(seed=2**70)),
    ("observe", simulate(observe=[bm.energy])),
    ("observe", simulate(observe={1: bm.energy})),
    ("observe", simulate(observe={"x": 5})),
    ("observe", simulate(observe={"x": None})),
    ("observe", simulate(observe={"x": "energy"})),
    ("observe", simulate(observe={"x": bm.histogram})),
    ("observe", simulate(observe={"x\x00y": bm.energy})),
    ("every", simulate(every=1.5)),
    ("every", simulate(every="2")),
    ("every", simulate(every=True)),
    ("burn_in", simulate(burn_in=1.5)),
    ("burn_in", simulate(burn_in=-1)),
    ("burn_in", simulate(burn_in=None)),
    ("until", simulate(until={"energy": None})),
    ("until", simulate(until={"energy": "0.1"})),
    ("until", simulate(until={"energy": [0.1]})),
    ("until", simulate(until={"energy": float("nan")})),
    ("until", simulate(until={1: 0.1})),
    ("until", simulate(until={"energy": True})),
    ("until", simulate(until=[0.1])),
    ("sweep", simulate(sweep={1: [1.0]})),
    ("sweep", simulate(sweep={"k": None})),
    ("sweep", simulate(sweep={"k": "abc"})),
    ("sweep", simulate(sweep={"k": [[1.0], [1.0, 2.0]]})),
    ("sweep", simulate(sweep={"k": [1.0, None]})),
    ("sweep", simulate(sweep={"k": {1.0, 2.0}})),
    ("sweep", simulate(sweep={"": [1.0]})),
    ("sweep", simulate(sweep={"a/b": [1.0]})),
    ("sweep", simulate(sweep="k")),
    ("path", simulate(path=5)),
    ("path", simulate(path=bm.Wiener)),
    ("path", simulate(path=jax.random.key(0))),
    ("t0", simulate(t0="0")),
    ("t0", simulate(t0=1e300)),
    ("t0", simulate(t0=10**400)),
    ("t0", simulate(t0=[0.0])),
    ("t0", simulate(t0=1e17)),
    ("on_failure", simulate(on_failure=None)),
    ("on_failure", simulate(on_failure=[])),
    ("block", simulate(block=1.5)),
    ("block", simulate(block=0)),
    ("mode", simulate(mode=None)),
    ("mode", simulate(mode=["native"])),
    ("devices", simulate(devices=1.0)),
    ("keep_final", simulate(keep_final="no")),
    ("first_trajectory", simulate(first_trajectory=-1)),
    ("first_trajectory", simulate(first_trajectory=0.5)),
    ("continue_from", lambda: bm.simulate(SCHEME, continue_from=5, steps=4)),
    ("continue_from", lambda: bm.simulate(SCHEME, continue_from="top.run", steps=4)),
    ("continue_from", lambda: bm.simulate(SCHEME, continue_from=bm.trajectory(SCHEME, START, step=0.1, steps=2), steps=4)),
    ("store", simulate(store=5)),
    ("store", simulate(store="")),
    ("store", simulate(store=LONG)),
    ("store", simulate(store="a\x00b")),
    ("extend", simulate(extend="yes")),
    ("force", simulate(force=1.5)),
    ("max_time", simulate(max_time="1")),
    ("max_time", simulate(max_time=-1)),
    ("max_time", simulate(max_time=float("nan"))),
    ("max_time", simulate(max_time=True)),
    ("executor", simulate(executor=2)),
    ("executor", simulate(executor=bm.Threads)),
    ("certify", simulate(certify="yes")),
    ("progress", simulate(progress="yes")),
    ("dry_run", simulate(dry_run="yes")),
    ("start", simulate(start=None)),
    ("start", simulate(start=[1.0])),
    ("start", simulate(start=SCHEME.start)),
    ("trajectory", trajectory(trajectory="0")),
    ("trajectory", trajectory(trajectory=-1)),
    ("trajectory", trajectory(trajectory=1.5)),
    ("trajectory", trajectory(trajectory=[0, 1])),
    ("steps", trajectory(steps="4")),
    ("every", trajectory(every=None)),
    ("seed", trajectory(seed="7")),
    ("t0", trajectory(t0=1e300)),
    ("path", trajectory(path=3)),
    ("start", trajectory(start=None)),
    ("of", average(of=5)),
    ("of", average(of="energy")),
    ("of", average(of=bm.histogram(X, range=(0, 1)))),
    ("over", average(over=None)),
    ("over", average(over=["end"])),
    ("trajectories", average(trajectories=1.5)),
    ("step", average(step="0.1")),
    ("seed", verify(seed="0")),
    ("seed", verify(seed=-1)),
    ("order", verify(order="no")),
    ("equilibrium", verify(equilibrium="no")),
    ("integrity", verify(integrity="no")),
    ("temperature", verify(temperature="1", budget=1)),
    ("temperature", verify(temperature=-1.0, budget=1)),
    ("tolerance", verify(tolerance="0.1", budget=1)),
    ("tolerance", verify(tolerance=-1.0, budget=1)),
    ("observables", verify(observables=[X], budget=1)),
    ("observables", verify(observables={"x": 5}, budget=1)),
    ("budget", verify(budget="soon")),
    ("budget", verify(budget=None)),
    ("alarm", verify(alarm=2.0)),
    ("alarm", verify(alarm="0.1")),
    ("step", verify(step="0.1")),
    ("start", verify(start=5)),
    ("tolerance", advise(tolerance=0)),
    ("tolerance", advise(tolerance="0.1")),
    ("observables", advise(observables=5)),
    ("seed", advise(seed=0.5)),
    ("range", lambda: bm.histogram(X, range=5)),
    ("range", lambda: bm.histogram(X, range="ab")),
    ("range", lambda: bm.histogram(X, range=(0, "1"))),
    ("range", lambda: bm.histogram(X, range=(0, float("inf")))),
    ("range", lambda: bm.histogram(X, range=None)),
    ("range", lambda: bm.histogram((X, X), range=(0, 1))),
    ("bins", lambda: bm.histogram(X, range=(0, 1), bins=True)),
    ("bins", lambda: bm.histogram(X, range=(0, 1), bins=1.5)),
    ("bins", lambda: bm.histogram(X, range=(0, 1), bins="10")),
    ("bins", lambda: bm.histogram(X, range=(0, 1), bins=10**12)),
    ("every", lambda: bm.histogram(X, range=(0, 1), every=1.5)),
    ("every", lambda: bm.histogram(X, range=(0, 1), every=0)),
    ("of", lambda: bm.histogram(5, range=(0, 1))),
    ("of", lambda: bm.histogram((), range=())),
    ("levels", lambda: bm.quantiles(X, levels=0.5)),
    ("levels", lambda: bm.quantiles(X, levels="0.5")),
    ("levels", lambda: bm.quantiles(X, levels=[])),
    ("levels", lambda: bm.quantiles(X, levels=[None])),
    ("every", lambda: bm.quantiles(X, every=True)),
    ("of", lambda: bm.quantiles(None)),
    ("of", lambda: bm.paths(5)),
    ("of", lambda: bm.paths("01")),
    ("of", lambda: bm.paths([0.5])),
    ("of", lambda: bm.paths([-1])),
    ("of", lambda: bm.paths(None)),
    ("of", lambda: bm.paths([2**70])),
    ("every", lambda: bm.paths([0], every="2")),
    ("lags", lambda: bm.autocorrelation(X, lags=True)),
    ("lags", lambda: bm.autocorrelation(X, lags=1.5)),
    ("about", lambda: bm.autocorrelation(X, about="0")),
    ("about", lambda: bm.autocorrelation(X, about=None)),
    ("of", lambda: bm.autocorrelation("x")),
    ("every", lambda: bm.autocorrelation(X, every=-1)),
    ("part", lambda: bm.mean_squared_displacement("x")),
    ("lags", lambda: bm.mean_squared_displacement(lags=True)),
    ("every", lambda: bm.mean_squared_displacement(every=1.5)),
    ("of", lambda: bm.extremes(5)),
    ("every", lambda: bm.extremes(X, every=1.5)),
    ("of", lambda: bm.first_passage(5)),
    ("every", lambda: bm.first_passage(X, every=None)),
    ("of", lambda: bm.time_average(5)),
    ("every", lambda: bm.time_average(X, every="1")),
    ("of", lambda: bm.values(None)),
    ("every", lambda: bm.values(X, every=0)),
    ("of", lambda: bm.section(5, at=X)),
    ("at", lambda: bm.section(X, at=5)),
    ("direction", lambda: bm.section(X, at=X, direction="up")),
    ("direction", lambda: bm.section(X, at=X, direction=[1])),
    ("capacity", lambda: bm.section(X, at=X, capacity=True)),
    ("capacity", lambda: bm.section(X, at=X, capacity=1.5)),
    ("name", lambda: bm.momentum(5)),
    ("name", lambda: bm.invariant(None)),
    ("no result or run at", lambda: bm.load("/nonexistent")),
    ("path", lambda: bm.load(5)),
    ("path", lambda: bm.load("")),
    ("path", lambda: bm.load(LONG)),
    ("path", lambda: bm.load("a\x00b")),
    ("no result or run at", lambda: bm.load(__file__)),
    ("result", lambda: bm.save(5, "five")),
    ("path", lambda: bm.save(START, 5)),
    ("place", lambda: bm.export(small_result(), LONG + ".csv")),
    ("place", lambda: bm.export(small_result(), "a\x00b.csv")),
    ("place", lambda: bm.export(small_result(), 5)),
    ("trajectory", lambda: bm.export(small_result(), "a.gsd", trajectory="0")),
    ("at", lambda: bm.export(small_result(), "a.csv", at=[1.0])),
    ("overwrite", lambda: bm.export(small_result(), "a.csv", overwrite="yes")),
    ("overwrite", lambda: bm.save(START, "o", overwrite="yes")),
    ("scheme", lambda: bm.simulate(SYSTEM, START, step=0.1, steps=4)),
    ("scheme", lambda: bm.trajectory(None, START, step=0.1, steps=4)),
    ("scheme", lambda: bm.verify(SYSTEM, START, step=0.1)),
    ("scheme", lambda: bm.explain(5)),
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[f"{name} {i}" for i, (name, _) in enumerate(CALLS)])
def test_the_error_is_ours_and_names_the_argument(name, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BismutError, match=name) as caught:
        call()
    assert len(str(caught.value)) < 400
    assert not list(Path(tmp_path).iterdir())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", np.float64(0.1)),
        ("step", np.array(0.1)),
        ("step", 1),
        ("steps", np.int64(3)),
        ("trajectories", jax.numpy.array(8)),
        ("seed", jax.numpy.array(8)),
        ("t0", -3),
        ("keep_final", np.True_),
        ("keep_final", 0),
        ("levels", np.array([0.1, 0.9])),
        ("levels", [0.5]),
        ("range", [0, 1]),
        ("range", np.array([0.0, 1.0])),
        ("range", ((0, 1), (2, 3))),
        ("bins", (10, np.int64(20))),
        ("until", {"energy": np.float32(0.1)}),
        ("store", Path("a") / "b"),
        ("max_time", 1),
        ("of", bm.energy),
        ("direction", np.int64(-1)),
    ],
)
def test_what_is_right_is_accepted(name, value):
    arguments.TABLE[name].check(value, name)


@pytest.mark.parametrize("name", ["init", "update", "finish"])
def test_an_observer_of_ones_own_has_three_functions(name):
    """Asked by itself: while tests run, the types of fields are checked before."""
    given = {"init": X, "update": lambda memory, state: memory, "finish": X}
    with pytest.raises(BismutError, match=f"{name} must be a function of"):
        bm.Observer.__check_init__(SimpleNamespace(**(given | {name: 5})))


def test_merge_takes_results():
    with pytest.raises(BismutError, match=r"merge needs two or more results .* got \(Start, int\)"):
        inspect.unwrap(bm.merge)(START, 5)


def test_a_misspelt_argument_is_known_by_its_neighbour():
    with pytest.raises(TypeError, match=r"simulate has no argument 'trajectory'\. Did you mean 'trajectories'"):
        bm.simulate(SCHEME, START, step=0.1, steps=2, trajectory=3)


def test_every_function_of_a_run_has_its_arguments_checked():
    """The functions whose parameters are in the table."""
    doors = [bm.simulate, bm.trajectory, bm.average, bm.verify, bm.advise_step, bm.save, bm.export, bm.load, bm.momentum, bm.invariant]
    doors += [bm.histogram, bm.quantiles, bm.paths, bm.autocorrelation, bm.mean_squared_displacement, bm.extremes, bm.first_passage]
    doors += [bm.time_average, bm.values, bm.section, bm.maximum_excursion]
    assert all(hasattr(door, "__wrapped__") for door in doors)


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_whole_numbers_may_be_held_by_arrays():
    """Handed on as numbers of Python, whoever counts with them."""
    two, four = jax.numpy.array(2), np.array(4)
    result = simulate(trajectories=two, steps=four, seed=two)()
    assert (result.trajectories_run, result.steps_done) == (2, 4)
    np.testing.assert_array_equal(result.final.q, simulate(seed=2)().final.q)
    assert float(average(trajectories=two, steps=four)()) == float(average(trajectories=2)())
