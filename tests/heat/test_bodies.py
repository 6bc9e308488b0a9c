"""Every axis of interacting rigid bodies has the temperature of the bath, whatever the friction: ⟨p_i²⟩ = m kT, ⟨m_i m_j⟩ = kT I_i δ_ij."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from tests.heat.fluid import FRICTIONS, INERTIA, KT, axis_temperatures, fluid, start_point

TRAJECTORIES, RECORDS = 8_000, 10  # times three bodies: a standard error of 0.29 %


def cross(state):
    """⟨m₁ m₂⟩, which vanishes."""
    turn = state.p[1]
    return jnp.mean(turn[:, 0] * turn[:, 1] / (KT * np.sqrt(INERTIA[:, 0] * INERTIA[:, 1])))


OBSERVE = {"axes": axis_temperatures, "cross": cross}


@functools.cache
def settled() -> bm.State:
    """States in equilibrium, heated from kT/2 by friction on everything."""
    scheme = bm.Langevin(fluid(), KT, **FRICTIONS["scalar"])
    start = scheme.start(start_point(), temperature=0.5 * KT)
    return bm.simulate(scheme, start, step=0.05, steps=240, trajectories=TRAJECTORIES, seed=7, observe=OBSERVE).final


@pytest.mark.parametrize("name", [name if name == "scalar" else pytest.param(name, marks=pytest.mark.slow) for name in FRICTIONS])
def test_temperature_of_every_axis(name):
    """Six axes within 4 standard errors of 1; a false alarm for all five frictions has probability 0.2 %.

    A bath with a wrong covariance would leave equilibrium within the nine time units of the run. Records are 0.6 apart: with these frictions p²
    forgets at a rate of 5 or more, so they count as independent (a correlation of 5 % would make the true error 1.05 times the stated one).
    """
    scheme = bm.Langevin(fluid(), KT, **FRICTIONS[name])
    few = name == "position dependent"  # there an eigenvalue problem is solved for each trajectory and step
    count = TRAJECTORIES // 8 if few else TRAJECTORIES
    equilibrium = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], settled())
    result = bm.simulate(
        scheme,
        scheme.start(equilibrium.q, momentum=equilibrium.p),
        step=0.05,
        steps=60 + 12 * RECORDS,
        every=12,
        trajectories=count,
        seed=8,
        observe=OBSERVE,
    )
    assert result.outcome.ok
    for observable, exact in (("axes", 1.0), ("cross", 0.0)):
        mean = np.asarray(result[observable].mean)[-RECORDS:].mean(0)
        error = np.asarray(result[observable].stderr)[-RECORDS:].mean(0) / np.sqrt(RECORDS)
        assert (error < (0.009 if few else 0.003)).all()
        assert (np.abs(mean - exact) < 4 * error).all(), (observable, mean, error)
