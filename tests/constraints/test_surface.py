"""g(q) = 0 and G v = 0 all along, and the flow is symplectic on T*{g = 0}."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.structure import step_structure
from bismut.flows import Flow, flow
from bismut.mechanics import Claims, State
from bismut.mechanics.constraint import rate
from bismut.programs.evaluation import evaluate
from tests.constraints.systems import ALL, sphere, start_of, walked

SCHEMES = {"euler": bm.VariationalEuler, "verlet": bm.Verlet, "midpoint": bm.Midpoint}


@pytest.mark.parametrize("name", ["euler", "verlet"])
def test_a_hundred_thousand_noisy_steps_stay_on_the_sphere(name):
    """|g| ≤ 1e−12, |G v| ≤ 1e−12, and the vertical angular momentum is kept."""
    scheme = SCHEMES[name](sphere())
    run = bm.trajectory(scheme, start_of(scheme), step=0.02, steps=100_000, seed=1)
    assert run.outcome.ok
    q, p = np.asarray(run.q), np.asarray(run.p)
    assert np.abs(np.sum(q**2, 1) - 1).max() < 1e-12
    assert np.abs(np.sum(q * p, 1)).max() < 1e-12
    J = q[:, 0] * p[:, 1] - q[:, 1] * p[:, 0]
    assert np.abs(J - J[0]).max() < 1e-11


CASES = [("euler", "sphere"), ("verlet", "sphere"), ("euler", "triatomic")]
LONG = [pytest.param("verlet", name, marks=pytest.mark.slow) for name in ("chain", "ball joint")]  # to compile


@pytest.mark.parametrize(("name", "system"), [*CASES, *LONG])
def test_symplectic_on_the_surface(name, system):
    scheme = SCHEMES[name](ALL[system]())
    dW = jnp.asarray(3 * np.sqrt(0.05) * np.array([0.8, -1.1]))
    defect, volume, _ = evaluate(lambda s: step_structure(scheme, s, 0.05, dW, 0.0), start_of(scheme))
    assert float(defect) < 1e-11
    assert abs(float(volume) - 1) < 1e-11


def test_a_step_off_the_surface_would_be_seen():
    """The defect of the unconstrained scheme followed by a plain projection of q is not round-off: the measure can fail."""
    constrained = sphere()
    free = bm.Verlet(bm.mechanical(bm.Euclidean(3), mass=1.3, potential=lambda q: 2.0 * q[2]))

    class Projected(Flow):
        claims = Claims(order=1)
        constrained = True

        def advance(self, state, h, dW, t):
            new, solve = flow(free).advance(state, h, jnp.zeros(0), t)
            q = new.q / jnp.sqrt(new.q @ new.q)
            return State(q, new.p - q * (q @ new.p)), solve

    scheme = Projected(constrained)
    defect, _, _ = evaluate(lambda s: step_structure(scheme, s, 0.3, jnp.zeros(2), 0.0), start_of(bm.Verlet(constrained)))
    assert float(defect) > 1e-4


@pytest.mark.parametrize("system", ["ball joint", pytest.param("triatomic", marks=pytest.mark.slow), "chain"])
def test_all_constraints_hold(system):
    scheme = bm.VariationalEuler(ALL[system]())
    states, solved = walked(scheme, start_of(scheme), 0.02, 30)
    assert solved
    off, leaving = evaluate(
        jax.vmap(lambda s: (scheme.system.constraint(s.q), rate(scheme.system, s.q, scheme.system.velocity(s.q, s.p), 0.0))), states
    )
    assert np.abs(off).max() < 1e-12
    assert np.abs(leaving).max() < 1e-12
