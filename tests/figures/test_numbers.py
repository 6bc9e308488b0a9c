"""The numbers of the figures are those of theory: short forms of the experiments."""

import jax.numpy as jnp
import numpy as np
import pytest

from bismut.figures import ballistic_pendulum, spring_lattice, underwater_vehicle


@pytest.mark.parametrize(
    ("method", "step", "expected"),
    # Running mean at t = 200, read at the node.
    [("VI1", 0.5, 0.0075), ("VI1", 0.2, 0.0075), ("RK4", 0.5, 0.00364)],
)
def test_the_lattice_has_the_temperature_of_theory(method, step, expected):
    """Half of the kinetic energy goes into the springs, 0.0075 per mass is left, at any step that is stable; Runge–Kutta 4 has lost half of that."""
    curve = spring_lattice.curve(method, step, 200.0)
    assert curve.node[-1] == pytest.approx(expected, rel=0.03)


def test_the_lattice_does_not_break():
    """At the largest step, over the whole time of the figure: 40 000 steps."""
    curve = spring_lattice.curve("VI1", 0.5, 20_000.0)
    late = curve.node[curve.times > 200]
    assert np.ptp(late) < 0.05 * late[-1]


def test_runge_kutta_loses_the_vehicles_energy():
    scheme, p = underwater_vehicle.prepared("RK4")
    inertia = np.asarray(scheme.system.parameters["inertia"])
    end = np.asarray(underwater_vehicle.momenta(scheme, jnp.asarray(p), 0.05, steps=6000))[-1]
    lost = 1 - (end**2 / inertia).sum(-1) / (p**2 / inertia).sum(-1)
    # 0.72 % over t = 300; chaotic starts make the mean over 16 uncertain by a few hundredths of a per cent.
    assert lost.mean() == pytest.approx(0.0072, abs=4e-4)


def chain(method: str, step: float, chunks: int) -> list[tuple[np.ndarray, ...]]:
    """Angle, Π₃ and time of the crossings of the two starts of the chain of islands."""
    scheme, p = underwater_vehicle.prepared(method)
    p, parts = p[list(underwater_vehicle.CHAIN)], []
    for number in range(chunks):
        rows = np.concatenate([p[None], np.asarray(underwater_vehicle.momenta(scheme, jnp.asarray(p), step, steps=underwater_vehicle.CHUNK))])
        parts.append(underwater_vehicle.crossings(rows, step, number * underwater_vehicle.CHUNK * step))
        p = rows[-1]
    start, *rest = (np.concatenate(part) for part in zip(*parts, strict=True))
    return [tuple(part[start == which] for part in rest) for which in range(len(p))]


@pytest.mark.slow
def test_variational_euler_keeps_the_islands_apart():
    """Every third crossing stays in a sector of its own, at the coarse step; with the Cayley map the three are one ring from the beginning."""
    for angle, turning, when in chain("VI1", 0.05, 2):
        assert len(angle) > 150
        assert underwater_vehicle.apart(angle, turning)
        assert underwater_vehicle.time_together(angle, turning, when) == np.inf


def test_runge_kutta_smears_the_islands():
    """At the same step energy is lost until an orbit wanders from island to island, past t = 2200."""
    ends = [underwater_vehicle.time_together(*crossings) for crossings in chain("RK4", 0.05, 30)]
    assert 1500 < min(ends) < 3000


def test_half_of_the_vehicles_starts_are_chaotic():
    assert underwater_vehicle.chaos().sum() == 8


@pytest.mark.parametrize(("method", "expected"), [("SVI", 1.0), ("EEM", 2.15), ("IEM", 0.74)])
def test_one_method_keeps_the_pendulums_temperature_one_heats_it_and_one_cools_it(method, expected):
    """Kinetic energy over kT at t = 100, h = 0.1: its relative spread is 1, so 4 standard errors of 2000 trajectories are 9 %."""
    curve = ballistic_pendulum.curve(ballistic_pendulum.ballistic_pendulum(), method, 0.1, 0.1, 2000)
    assert curve.near(100.0) == pytest.approx(expected, rel=0.09)
