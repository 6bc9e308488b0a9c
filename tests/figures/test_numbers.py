"""The numbers of the figures are those of theory: short forms of the experiments."""

import jax.numpy as jnp
import numpy as np
import pytest

from bismut.figures import ballistic_pendulum, spring_lattice, underwater_vehicle


@pytest.mark.parametrize(
    ("method", "step", "expected"),
    # Running mean at t = 200 for another draw of the start velocities: three per cent between draws.
    [("VI1", 0.2, 0.0307), ("RK4", 0.5, 0.0128)],
)
def test_the_lattice_has_the_temperature_of_theory(method, step, expected):
    curve = spring_lattice.curve(method, step, 200.0)
    assert curve.mean[-1] == pytest.approx(expected, rel=0.03)


def test_runge_kutta_loses_the_vehicles_energy():
    scheme, p = underwater_vehicle.prepared("RK4")
    inertia = np.asarray(scheme.system.parameters["inertia"])
    end = np.asarray(underwater_vehicle.momenta(scheme, jnp.asarray(p), 0.05, steps=6000))[-1]
    lost = 1 - (end**2 / inertia).sum(-1) / (p**2 / inertia).sum(-1)
    # 0.72 % over t = 300; chaotic starts make the mean over 16 uncertain by a few hundredths of a per cent.
    assert lost.mean() == pytest.approx(0.0072, abs=4e-4)


def test_half_of_the_vehicles_starts_are_chaotic():
    assert underwater_vehicle.chaos().sum() == 8


@pytest.mark.parametrize(("method", "expected"), [("SVI", 1.0), ("EEM", 2.15), ("IEM", 0.74)])
def test_one_method_keeps_the_pendulums_temperature_one_heats_it_and_one_cools_it(method, expected):
    """Kinetic energy over kT at t = 100, h = 0.1: its relative spread is 1, so 4 standard errors of 2000 trajectories are 9 %."""
    curve = ballistic_pendulum.curve(ballistic_pendulum.ballistic_pendulum(), method, 0.1, 0.1, 2000)
    assert curve.near(100.0) == pytest.approx(expected, rel=0.09)
