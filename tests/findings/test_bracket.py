"""⟨p, [η₁, η₂]⟩ of the group equals the bracket of the frame, −d⟨p, η⟩ found by differentiating `move` and `subtract`, with any retraction."""

import numpy as np
import pytest

import bismut as bm
from bismut.findings.structure import symplectic_form
from bismut.spaces import Space
from tests.flows.catalogue import once

SPACES = [bm.SO3(), bm.SO3("exp"), bm.SE3(), bm.Euclidean(2) * bm.SO3()]


def at_random(space: bm.Space) -> bm.State:
    rng = np.random.default_rng(5)
    somewhere = lambda x, p: bm.State(space.move(space.origin(), space.unflatten(x)), space.unflatten(p))
    return once(somewhere)(rng.normal(size=space.dim), rng.normal(size=space.dim))


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_the_bracket_of_the_group_is_that_of_the_frame(space):
    state = at_random(space)
    n = space.dim
    form = np.asarray(once(lambda s: symplectic_form(space, s))(state))
    frame = np.asarray(once(lambda s: Space.bracket_form(space, s.q, s.p))(state))
    np.testing.assert_allclose(form[:n, :n], frame, rtol=0, atol=1e-14 * n)
    assert np.abs(frame).max() > 0.1


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_the_form_is_skew_and_pairs_positions_with_momenta(space):
    form = np.asarray(once(lambda s: symplectic_form(space, s))(at_random(space)))
    n = space.dim
    np.testing.assert_allclose(form, -form.T, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(form[:n, n:], np.eye(n))
    np.testing.assert_array_equal(form[n:, n:], np.zeros((n, n)))
