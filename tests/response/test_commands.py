"""`bismut transport`, `expect`, `sensitivity` and `free-energy` give what the functions give, as text or as JSON, and refuse in a sentence."""

import json

import pytest
from typer.testing import CliRunner

import bismut as bm
from bismut.cli.main import app
from bismut.cli.runs.from_options import from_options


def run(*words: str):
    return CliRunner().invoke(app, list(words))


def test_the_energy_of_a_pendulum_moves_with_its_stiffness():
    """d⟨E⟩/dkT > ½: the kinetic part alone gives ½, and the heat capacity of the potential is positive."""
    words = ("sensitivity", "pendulum", "--of", "energy", "--by", "temperature", "--equilibrium", "--method", "covariance")
    done = run(*words, "--steps", "400", "--burn-in", "100", "--trajectories", "200", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    value, error = found["estimators"]["covariance"]["value"][0][0], found["estimators"]["covariance"]["stderr"][0][0]
    assert value - 4.5 * error > 0.5
    assert "distribution is not known" in run(*(word for word in words if word != "--equilibrium")).output


def test_diffusion_of_a_pendulum(tmp_path):
    """V = −½ cos q: D = 0.8149716670; four ways as JSON, and a picture; too few steps for the lags are wrong usage."""
    picture = tmp_path / "pendulum.png"
    words = ("transport", "pendulum", "--set", "noise=0", "--set", "stiffness=0.5", "--temperature", "1", "--friction", "1", "--seed", "1")
    words += ("--step", "0.1", "--trajectories", "200", "--lags", "40", "--every", "4")
    done = run(*words, "--steps", "600", "--burn-in", "50", "--figure", str(picture), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert set(found["ways"]) == {"einstein", "green_kubo", "response", "transient"}
    assert found["agree"]
    value, error = (found["ways"]["green_kubo"][key][0][0] for key in ("value", "stderr"))
    assert abs(value - 0.8149716670) < 4.5 * error
    assert picture.stat().st_size > 10_000
    short = run(*words, "--steps", "60")
    assert short.exit_code == 2
    assert "longest lag" in short.output


PAIR = """
import bismut as bm
import jax.numpy as jnp
start = lambda scheme: scheme.start(jnp.zeros(2), temperature=1.0)
system = bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.5 * (q[0] - q[1]) ** 2)
"""


def test_a_flux_a_part_and_weights(tmp_path):
    """Two particles on a spring: the mean of both diffuses by kT/2Γ, and so does each; numbers are those of the function. Wrong usage says why."""
    model = tmp_path / "pair.py"
    model.write_text(PAIR)
    words = ("transport", f"{model}:system", "--temperature", "1", "--friction", "1", "--step", "0.1", "--steps", "400", "--burn-in", "50")
    words += ("--trajectories", "100", "--lags", "20", "--every", "4", "--no-response", "--json")
    pair = bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.5 * (q[0] - q[1]) ** 2)
    scheme = bm.Langevin(pair, temperature=1.0, friction=1.0)
    start = from_options(f"{model}:system", {"bath__temperature": 1.0, "bath__friction": "1"}).start
    settings = {"step": 0.1, "steps": 400, "burn_in": 50, "trajectories": 100, "lags": 20, "every": 4, "response": False}
    cases = {
        ("--flux", "p", "--entry", "0", "--entry", "1", "--scale", "2"): {"flux": lambda state: state.p[:, None], "scale": 2.0},
        ("--weights", "0.5,0.5", "--part", "0"): {"part": lambda v: 0.5 * (v[0] + v[1])},
    }
    for typed, options in cases.items():
        done = run(*words, *typed)
        assert done.exit_code == 0, done.output
        found, own = json.loads(done.stdout)["ways"], bm.transport(scheme, start, **settings, **options).ways
        assert set(found) == set(own) == {"einstein", "green_kubo"}
        for name, way in own.items():
            assert found[name]["value"][0][0] == pytest.approx(way.value[0, 0], rel=1e-9)
        if "--weights" in typed:
            assert abs(own["green_kubo"].trace[0] - 0.5) < 4.5 * own["green_kubo"].trace[1]
    mistakes = {
        ("--entry", "0"): "give --flux QUANTITY",
        ("--flux", "p", "--entry", "2"): "the flux has shape (2,)",
        ("--flux", "p", "--part", "0"): "not both",
        ("--flux", "energy,temperature"): "takes one quantity",
        ("--part", "x"): "whole numbers",
        ("--part", "2"): "there are 2 components",
        ("--weights", "1,2,3"): "each of the 2 bodies",
    }
    for typed, why in mistakes.items():
        done = run(*words, *typed)
        assert done.exit_code == 2, done.output
        assert why in " ".join(done.output.split()), done.output


@pytest.mark.slow
def test_a_mean_of_an_oscillator_to_a_tolerance():
    """⟨H⟩ at t = 1 within the tolerance is exit code 0, out of reach of so many steps 1; the numbers are those of the function."""
    words = ("expect", "oscillator", "--set", "noise=0", "--temperature", "1", "--friction", "1", "--of", "energy", "--time", "1", "--json")
    done = run(*words, "--tolerance", "0.1")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["met"]
    assert found["bias"] + 2 * found["stderr"] <= 0.1
    ready = from_options("oscillator", {"system__parameters": ["noise=0"], "bath__temperature": 1.0, "bath__friction": "1", "observe": ["energy"]})
    own = bm.expectation(ready.scheme, ready.start, of=ready.observe["energy"], time=1.0, tolerance=0.1)
    assert (own.value, own.stderr) == (found["value"], found["stderr"])
    cut = run(*words, "--tolerance", "1e-5", "--most", "1e4")
    assert cut.exit_code == 1
    assert not json.loads(cut.stdout)["met"]
    assert "one quantity" in run(*words[:6], "--of", "paths").output


@pytest.mark.slow
def test_work_on_a_pendulum(tmp_path):
    picture = tmp_path / "work.png"
    words = ("free-energy", "pendulum", "--move", "stiffness", "--from", "0.5", "--to", "1", "--step", "0.1", "--steps", "20", "--burn-in", "100")
    done = run(*words, "--trajectories", "300", "--no-integrate", "--figure", str(picture))
    assert done.exit_code == 0, done.output
    assert "by bennett; the ways agree" in done.stdout
    assert picture.stat().st_size > 10_000
    assert "key of the system's parameters" in run(*words[:3], "weight", *words[4:]).output
