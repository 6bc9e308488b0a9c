"""What NumPy carries out is what JAX computes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.host import evaluate
from tests.engines.test_primitives import CASES


@pytest.mark.parametrize("name", CASES)
def test_numpy_gives_what_jax_gives(name):
    function, *arrays = CASES[name]
    one = [x[0] for x in arrays]
    found, expected = evaluate(function, *one), jax.jit(function)(*one)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def test_what_is_traced_is_left_to_jax():
    """Derivatives go through, with respect to arguments and to what a function closes over."""
    assert jax.grad(lambda a: evaluate(lambda x: jnp.sin(a * x), 2.0))(0.5) == pytest.approx(2 * np.cos(1.0))
    assert jax.grad(lambda a: evaluate(lambda x: x**3, a))(2.0) == pytest.approx(12.0)


def test_single_precision_stays_single():
    x = np.float32([0.1, 0.2, 0.3])
    found = evaluate(lambda x: (x @ x + x**3, 1 / x, jnp.sum(x) * 2.0, x.astype(jnp.int32)), x)
    assert [leaf.dtype for leaf in found] == [np.float32, np.float32, np.float32, np.int32]
