"""dΘ⁺ = −dΘ⁻ = Ω: the discrete symplectic form is the same seen from either end, and is the canonical form pulled back to Q × Q."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings import symplectic_form
from bismut.flows import discrete_symplectic_form, end_momenta
from tests import systems

H = 0.1


@pytest.mark.parametrize("name", ["plane", "heavy_top"])
def test_both_ends_and_the_canonical_form_agree(name):
    scheme = bm.Midpoint(systems.ALL[name]())
    space, n = scheme.space, scheme.space.dim
    q0 = space.random(jax.random.key(1))
    q1 = space.move(q0, space.unflatten(0.2 * jax.random.normal(jax.random.key(2), (n,))))
    dW = jnp.array([0.3, -0.2])
    M = np.asarray(discrete_symplectic_form(scheme, q0, q1, H, dW))
    moved = lambda q, e: space.move(q, space.unflatten(e))
    zero = jnp.zeros(n)
    right = jax.jacfwd(lambda e: space.flatten(end_momenta(scheme, moved(q0, e), q1, H, dW)[1]))(zero)
    assert np.allclose(np.asarray(right), -M.T, atol=1e-12)

    # The tangent of (q0, q1) ↦ (q0, p0) carries the canonical form to M and its transpose.
    left = jax.jacfwd(lambda e: space.flatten(end_momenta(scheme, moved(q0, e), q1, H, dW)[0]))(zero)
    p0, _ = end_momenta(scheme, q0, q1, H, dW)
    T = np.block([[np.eye(n), np.zeros((n, n))], [np.asarray(left), M]])
    pulled = T.T @ np.asarray(symplectic_form(space, bm.State(q0, p0))) @ T
    expected = np.block([[np.zeros((n, n)), M], [-M.T, np.zeros((n, n))]])
    assert np.allclose(pulled, expected, atol=1e-11)
