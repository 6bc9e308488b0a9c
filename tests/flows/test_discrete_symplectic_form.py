"""dΘ⁺ = −dΘ⁻ = Ω: the discrete symplectic form is the same seen from either end, and is the canonical form pulled back to Q × Q."""

import jax
import numpy as np
import pytest

import bismut as bm
from bismut.findings.structure import symplectic_form
from bismut.flows import discrete_symplectic_form, end_momenta
from tests import systems
from tests.flows.catalogue import once

H = 0.1


@pytest.mark.parametrize("name", ["plane", "heavy_top"])
def test_both_ends_and_the_canonical_form_agree(name):
    scheme = bm.Midpoint(systems.ALL[name]())
    space, n = scheme.space, scheme.space.dim
    moved = lambda q, e: space.move(q, space.unflatten(e))
    q0 = systems.random_state(scheme.system, 1).q
    q1 = once(moved)(q0, 0.2 * np.random.default_rng(2).normal(size=n))
    dW, zero = jax.device_put(np.array([0.3, -0.2])), np.zeros(n)
    M = np.asarray(discrete_symplectic_form(scheme, q0, q1, H, dW))
    ends = lambda e: tuple(map(space.flatten, end_momenta(scheme, moved(q0, e), q1, H, dW)))
    left, right = map(np.asarray, once(jax.jacfwd(ends))(zero))
    assert np.allclose(right, -M.T, atol=1e-12)

    # The tangent of (q0, q1) ↦ (q0, p0) carries the canonical form to M and its transpose.
    p0, _ = end_momenta(scheme, q0, q1, H, dW)
    T = np.block([[np.eye(n), np.zeros((n, n))], [left, M]])
    pulled = T.T @ np.asarray(once(lambda z: symplectic_form(space, z))(bm.State(q0, p0))) @ T
    expected = np.block([[np.zeros((n, n)), M], [-M.T, np.zeros((n, n))]])
    assert np.allclose(pulled, expected, atol=1e-11)
