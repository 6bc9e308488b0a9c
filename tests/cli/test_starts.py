"""Starts on the command line: at the time of the run, and with what was given, whatever is observed."""

import json
from pathlib import Path

import numpy as np
import pytest

from bismut.store import read_run

MODEL = '''
"""A bead on a circle whose centre goes up and down."""
import jax.numpy as jnp

import bismut as bm


def lift(t):
    return 0.3 * jnp.sin(3.0 * t)


def system():
    circle = lambda x, t: jnp.array([x[0] ** 2 + (x[1] - lift(t)) ** 2 - 1.0])
    return bm.mechanical(bm.Euclidean(2), potential=lambda x: x[1], constraint=circle)


def start(scheme):
    return scheme.start([0.6, -0.8], velocity=[0.0, 0.9])


def scheme(system):
    return bm.Verlet(system)
'''

HEAVY = '''
"""A particle in a bath, whose mass is a parameter."""
import bismut as bm


def system(mass=1.0):
    L = lambda q, v, parameters: 0.5 * parameters["mass"] * v @ v - 0.5 * q @ q
    return bm.System(bm.Euclidean(1), L, parameters={"mass": mass})


def start(scheme):
    return scheme.start([1.0], velocity=[1.0])


def scheme(system):
    return bm.Langevin(system, temperature=0.1, rate=0.1)
'''


def test_a_start_on_a_moving_surface_is_one_of_the_time_of_the_run(bismut):
    """Right at t0 = 0.4, where the centre is at 0.28 and moves with 0.326, it is run; off the surface there it is refused, in the usual words."""
    Path("lifted.py").write_text(MODEL)
    small = ("--steps", "3", "--trajectories", "2", "--step", "0.01")
    t0 = 0.4
    height, speed = 0.3 * np.sin(3 * t0), 0.9 * np.cos(3 * t0)
    right = ("--start", f"q=[0.6, {height - 0.8}]", "--start", f"velocity=[0.0, {speed}]")
    found = bismut("run", "lifted.py:system", *small, "--t0", str(t0), *right, "--out", "late")
    assert found.exit_code == 0, found.output + found.stderr
    wrong = bismut("run", "lifted.py:system", *small, *right, "--out", "early")
    assert wrong.exit_code == 2
    assert "off the constraints" in wrong.stderr
    own = bismut("run", "lifted.py:system", *small, "--t0", str(t0), "--out", "own")
    assert own.exit_code == 2
    assert "off the constraints" in own.stderr


@pytest.mark.parametrize("observed", ["p", "p,heat"])
def test_what_is_observed_leaves_a_start_alone(bismut, observed):
    """p = m v at the start for every mass of a sweep, whether heat is observed or not."""
    Path("heavy.py").write_text(HEAVY)
    words = ("--steps", "2", "--trajectories", "2", "--step", "0.01", "--sweep", "mass=1,3", "--observe", observed, "--json")
    found = bismut("run", "heavy.py:system", *words, "--out", observed)
    assert found.exit_code == 0, found.output + found.stderr
    assert json.loads(found.stdout)["ok"]
    first = np.asarray(read_run(observed).statistics["p"]["mean"].values)
    np.testing.assert_allclose(first.reshape(2, -1)[:, 0], [1.0, 3.0], rtol=1e-12)
