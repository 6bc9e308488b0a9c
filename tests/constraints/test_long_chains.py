"""Points on rigid links in a bath: their momenta relax at a cost proportional to the links, in machine code.

Γ = c M    ⟹    p ← P(e^{−ch} p + √(kT(1 − e^{−2ch})) M^{½} z),    P onto {G M⁻¹p = 0}
"""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.body_loops import Bonds, Pair, pairs
from bismut.errors import BismutError, BismutWarning, DegenerateError
from bismut.mechanics.constraint import project
from bismut.mechanics.friction import FactoredFriction, UniformFriction


def chain(count: int, mass: float | np.ndarray = 1.0) -> bm.System:
    joined = Bonds(np.arange(count - 1), np.arange(1, count))
    constraint = lambda x: pairs(lambda a, b, _: Pair(own=(b - a) @ (b - a)), x, bonds=joined).own - 1.0
    return bm.mechanical(bm.Euclidean(3) ** count, mass=mass, constraint=constraint)


def coil(count: int) -> np.ndarray:
    """A random walk; a straight chain is under a tension of count²/8 kT as soon as it moves, too stiff for any usual step."""
    steps = np.random.default_rng(3).normal(size=(count, 3))
    return np.cumsum(steps / np.linalg.norm(steps, axis=1)[:, None], 0)


def bath(system: bm.System, **friction) -> bm.Langevin:
    return bm.Langevin(system, temperature=1.0, splitting=bm.GLA(bm.Verlet), **friction)


def test_a_friction_that_is_a_rate_relaxes_as_any_friction_does():
    """For the same normals the projection and the matrix function of all columns agree to round-off."""
    count, c, masses = 8, 0.7, np.linspace(1.0, 2.0, 8)[:, None]
    system, rng = chain(count, masses), np.random.default_rng(0)
    law = bath(system, friction=c * masses).friction
    assert isinstance(law, UniformFriction)
    columns = jnp.asarray(np.diag(np.sqrt(c * np.repeat(masses, 3))))
    dense = FactoredFriction(lambda system, q, t, kT, constant: constant, columns, 3 * count, "Γ = A Aᵀ")

    def both(q, p, z):
        p = project(system, q, p, 0.0)[0]
        return [one.relax(system, q, p, 0.3, 0.0, 1.5, z) for one in (law, dense)]

    found, expected = jax.jit(both)(coil(count), rng.normal(size=(count, 3)), rng.normal(size=3 * count))
    np.testing.assert_allclose(found, expected, atol=2e-13)


@pytest.mark.parametrize("given", [{"friction": 1.0}, {"friction": np.full((5, 1), 1.0)}, {"rate": 1.0}])
def test_equal_masses_have_a_rate(given):
    law = bath(chain(5), **given).friction
    assert isinstance(law, UniformFriction)
    assert float(law.rate) == 1.0


def test_a_friction_that_is_no_rate_says_what_it_costs():
    """Few columns have machine code; many are a warning, with what to do instead."""
    assert isinstance(bath(chain(5, np.linspace(1.0, 2.0, 5)[:, None]), friction=1.0).friction, FactoredFriction)
    with pytest.warns(BismutWarning, match=r"60 × 60.*rate="):
        bath(chain(20, np.linspace(1.0, 2.0, 20)[:, None]), friction=1.0)


def test_a_chain_of_forty_points_forgets_its_temperature():
    """Begun at 2 kT, after 10 relaxation times ⟨T⟩ = kT: 4 standard errors of a sum of 16 200 squares, a false alarm in 16 000. The mean error of the
    integrator is within the same of 0 and below 1 % of the heat that left."""
    count, trajectories = 40, 200
    system = chain(count)
    scheme = bath(system, friction=20.0)
    start = scheme.start(coil(count), temperature=2.0, ledger=True)
    observe = {"kT": bm.temperature, "gap": lambda s: jnp.max(jnp.abs(system.constraint(s.q, 0.0))), "error": bm.integrator_error, "heat": bm.heat}
    settings = {"step": 0.005, "steps": 100, "every": 100, "trajectories": trajectories, "seed": 1, "mode": "native", "progress": False}
    run = bm.simulate(scheme, start, observe=observe, **settings)
    assert abs(float(run.kT.mean[-1]) - 1) < 4 * np.sqrt(2 / (system.freedom * trajectories))
    assert float(run.gap.max[-1]) < 1e-13 * count
    heat, error, spread = (float(x[-1]) for x in (run.heat.mean, run.error.mean, run.error.stderr))
    assert heat < -30.0
    assert abs(error) < max(4 * spread, 0.01 * abs(heat))


def test_a_hundred_links_have_machine_code():
    """As the plan of a run says."""
    scheme = bath(chain(101), friction=1.0)
    start = scheme.start(coil(101), temperature=1.0)
    plan = bm.simulate(scheme, start, step=0.005, steps=10, trajectories=40, seed=1, mode="native", dry_run=True)
    assert "native" in str(plan)


def test_links_that_depend_on_each_other_are_still_named():
    """The quick test of independence hands over to the one that names rows."""

    def twice(x):
        links = jnp.sum(jnp.diff(x, axis=0) ** 2, 1) - 1.0
        return jnp.append(links, links[3] * 2.0)

    system = bm.mechanical(bm.Euclidean(3) ** 30, constraint=twice)
    with pytest.raises(DegenerateError, match=r"g\[3\], g\[29\]"):
        bm.Verlet(system).start(coil(30), velocity=np.zeros((30, 3)))


def test_a_start_with_a_temperature_has_no_energy_yet():
    """Energies and momentum maps ask for a state of a run."""
    system = bm.mechanical(bm.Euclidean(3), symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))})
    start = bm.Langevin(system, temperature=1.0, rate=1.0).start(np.zeros(3), temperature=1.0)
    for method, named in ((bm.System.energy, ()), (bm.System.kinetic_energy, ()), (bm.System.momentum_map, ("vertical",))):
        with pytest.raises(BismutError, match=r"no momenta yet.*trajectory"):
            inspect.unwrap(method)(system, *named, start.state)  # unwrapped: the tests check types at run time, which users do not
