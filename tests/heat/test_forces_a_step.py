"""In a run a step of BAOAB, OBABO or Brownian motion evaluates one force: what ended the step before begins it, and changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.flows import kernel
from bismut.programs.evaluation import evaluate


def count(name: str, jaxpr) -> int:
    """How often a primitive is evaluated, with everything that is called counted each time."""
    inner = lambda equation: [getattr(value, "jaxpr", value) for value in equation.params.values() if hasattr(getattr(value, "jaxpr", value), "eqns")]
    return sum((equation.primitive.name == name) + sum(count(name, part) for part in inner(equation)) for equation in jaxpr.eqns)


@pytest.mark.parametrize("noise", [None, lambda q: q[:1] ** 2], ids=["bath", "bath and noise"])
@pytest.mark.parametrize(("splitting", "alone"), [(bm.BAOAB, 2), (bm.OBABO, 2), (bm.ABOBA, 1)], ids=str)
def test_one_force_a_step(splitting, alone, noise):
    """Sines are counted in the traced step of a pendulum: one in a run, `alone` in a step that knows of no other."""
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.cos(q[0]), noise=noise), 0.5, 1.0, splitting)
    start = scheme.start(jnp.array([0.3]), velocity=jnp.array([0.4]))
    sines = lambda function, *given: count("sin", jax.make_jaxpr(function)(*given).jaxpr)
    in_a_run = lambda carry: kernel.step(scheme, carry, 0.1, jnp.zeros(scheme.channels), 0.0)
    assert sines(in_a_run, kernel.begin(scheme, start, 0.0)) == 1
    assert sines(lambda state: scheme.advance(state, 0.1, jnp.zeros(scheme.channels), 0.0), start) == alone


@pytest.mark.parametrize(("metropolised", "alone"), [(False, 1), (True, 2)])
def test_one_force_a_step_of_overdamped_motion(metropolised, alone):
    """Cosines, as energies of a pendulum are sines here: a Metropolised step keeps the force at its end for the next one."""
    scheme = bm.Brownian(bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.sin(q[0])), 0.5, metropolised=metropolised)
    start = scheme.start(jnp.array([0.3]), momentum=jnp.zeros(1))
    cosines = lambda function, *given: count("cos", jax.make_jaxpr(function)(*given).jaxpr)
    in_a_run = lambda carry: kernel.step(scheme, carry, 0.1, jnp.zeros(scheme.channels), 0.0)
    assert cosines(in_a_run, kernel.begin(scheme, start, 0.0)) == 1
    assert cosines(lambda state: scheme.advance(state, 0.1, jnp.zeros(scheme.channels), 0.0), start) == alone


@pytest.mark.parametrize("noise", [None, lambda q, t: jnp.array([q[0] * q[1] * t])], ids=["bath", "bath and noise"])
@pytest.mark.parametrize("splitting", [bm.BAOAB, bm.OBABO], ids=str)
def test_what_is_handed_on_is_what_would_be_found(splitting, noise):
    """With a potential that changes in time, and a force beside it."""
    force = lambda q, v: jnp.array([q[1], 0.3])
    system = bm.mechanical(bm.Euclidean(2), potential=lambda q, t: jnp.cos(q[0] - t) * q[1], force=force, noise=noise)
    scheme = bm.Langevin(system, 0.5, 1.0, splitting)
    state, h, t = scheme.start(jnp.array([0.3, 1.1]), velocity=jnp.array([0.4, 0.2])), 0.1, 0.7
    dW = jnp.linspace(-0.4, 0.5, scheme.channels)
    found = evaluate(lambda z: scheme.step_with_cache(z, scheme.init_cache(z, t), h, dW, t)[1][0], state)
    again = evaluate(lambda z: scheme.init_cache(scheme.advance(z, h, dW, t)[0], t + h)[0], state)
    np.testing.assert_allclose(found, again, rtol=1e-13)
