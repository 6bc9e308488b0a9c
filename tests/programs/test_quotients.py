"""The least whole number divided by −1 is itself, with remainder 0, and by 0 all bits are set: no evaluator stops, as a processor would."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.programs.evaluation import evaluate as by_numpy
from tests.engines.functions import evaluate as natively


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_the_least_number_by_minus_one(kind):
    least = np.iinfo(kind).min
    a = np.array([least, least, least + 1, 7, -7, least], kind)
    b = np.array([-1, 1, -1, -1, 0, 0], kind)

    def function(a, b):
        return jax.lax.div(a, b), jax.lax.rem(a, b), a // b

    expected = np.array([least, least, -(least + 1), -7, -1, -1], kind), np.array([0, 0, 0, 0, -7, least], kind)
    rows = natively(lambda x: function(x[0], x[1]), np.stack([a, b])[None])
    for out in (by_numpy(function, a, b), jax.jit(function)(a, b), [np.asarray(row)[0] for row in rows]):
        for value, exact in zip(out[:2], expected, strict=True):
            np.testing.assert_array_equal(value, exact)
        assert np.asarray(out[2])[0] == least
    assert jnp.asarray(a).dtype == kind
