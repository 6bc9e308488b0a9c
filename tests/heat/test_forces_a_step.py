"""In a run a step of BAOAB or OBABO evaluates one force: what ended the step before begins it, and changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.flows import kernel


@pytest.mark.parametrize(("splitting", "alone"), [(bm.BAOAB, 2), (bm.OBABO, 2), (bm.ABOBA, 1)], ids=str)
def test_one_force_a_step(splitting, alone):
    """Sines are counted in the traced step of a pendulum: one in a run, `alone` in a step that knows of no other."""
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.cos(q[0])), 0.5, 1.0, splitting)
    start = scheme.start(jnp.array([0.3]), velocity=jnp.array([0.4]))
    sines = lambda function, *given: str(jax.make_jaxpr(function)(*given)).count("= sin ")
    in_a_run = lambda carry: kernel.step(scheme, carry, 0.1, jnp.zeros(scheme.channels), 0.0)
    assert sines(in_a_run, kernel.begin(scheme, start, 0.0)) == 1
    assert sines(lambda state: scheme.advance(state, 0.1, jnp.zeros(scheme.channels), 0.0), start) == alone


@pytest.mark.parametrize("splitting", [bm.BAOAB, bm.OBABO], ids=str)
def test_what_is_handed_on_is_what_would_be_found(splitting):
    """With a potential that changes in time, and a force beside it."""
    system = bm.mechanical(bm.Euclidean(2), potential=lambda q, t: jnp.cos(q[0] - t) * q[1], force=lambda q, v: jnp.array([q[1], 0.3]))
    scheme = bm.Langevin(system, 0.5, 1.0, splitting)
    state, h, t = scheme.start(jnp.array([0.3, 1.1]), velocity=jnp.array([0.4, 0.2])), 0.1, 0.7
    _, found, _ = scheme.resume(state, scheme.remember(state, t), h, jnp.linspace(-0.4, 0.5, scheme.channels), t)
    new, _ = scheme.advance(state, h, jnp.linspace(-0.4, 0.5, scheme.channels), t)
    np.testing.assert_allclose(found[0], scheme.remember(new, t + h)[0], rtol=1e-13)
