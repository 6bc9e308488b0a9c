"""Noether: momentum maps of symmetries of L and γ are kept by noisy steps to round-off, over 10⁴ steps.

Limit 1e−12 relative: 10⁴ round-offs of 1e−16 even if they all had one sign. Measured: 3e−14 (top), 7e−14 and 2e−14 (bodies).
"""

import jax
import numpy as np
import pytest

import bismut as bm
from bismut.programs.evaluation import evaluate
from tests.systems import bodies, heavy_top, random_state


def change(system: bm.System, name: str, states: bm.State) -> float:
    """The largest change of a momentum map along states, relative to its size."""
    J = np.asarray(evaluate(jax.vmap(lambda state: system.momentum_map(name, state)), states))
    assert np.abs(J[0]).max() > 0.1
    return np.abs(J - J[0]).max() / np.abs(J[0]).max()


@pytest.mark.parametrize("make", [bm.VariationalEuler, pytest.param(bm.Verlet, marks=pytest.mark.slow)])
def test_a_heavy_top_keeps_its_vertical_angular_momentum(make):
    system = heavy_top()
    run = bm.trajectory(make(system), random_state(system, 3), step=0.02, steps=10_000, every=1000)
    assert run.solve.converged.all()
    assert change(system, "vertical", run.states) < 1e-12
    # The noise does something: energy is not kept.
    energy = np.asarray(evaluate(jax.vmap(system.energy), run.states))
    assert np.ptp(energy) > 1


def test_rigid_bodies_keep_their_total_momentum_and_angular_momentum():
    """Three bodies on a ring, so that they meet rarely: their attraction has no floor, and energies of 10³ would cost 10⁴ in round-off."""
    system = bodies(3)
    scheme = bm.VariationalEuler(system)
    angle = 2 * np.pi * np.arange(3) / 3
    x = 3 * np.stack([np.cos(angle), np.sin(angle), 0.1 * angle], 1)
    v = 2.2 * np.stack([-np.sin(angle), np.cos(angle), 0 * angle], 1) + [0.1, 0.2, 0.3]
    turned, spun = random_state(system, 3).q[1], 0.5 * np.asarray(random_state(system, 3).p[1])
    start = scheme.start((x, turned), velocity=(v, spun))
    run = bm.trajectory(scheme, start, step=0.005, steps=10_000, every=1000)
    assert run.solve.converged.all()
    assert change(system, "momentum", run.states) < 1e-12
    assert change(system, "angular", run.states) < 1e-12
