"""Sine, cosine and tangent of lanes are right to 2 ulp up to 10⁶, and the library's beyond; judged by mpmath."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from bismut.ensembles.lanes import elementary

mpmath.mp.prec = 200


def arguments() -> np.ndarray:
    """Small and large ones, tiny ones, and those nearest to multiples of π/2, where reduction cancels everything."""
    rng = np.random.default_rng(0)
    multiples = np.array([float(mpmath.mpf(int(k)) * mpmath.pi / 2) for k in rng.integers(-636_619, 636_619, 500)])
    near = np.concatenate([multiples, np.nextafter(multiples, np.inf), multiples + 1e-9 * rng.normal(size=500)])
    spread = np.concatenate([rng.uniform(-10, 10, 1000), rng.uniform(-1e6, 1e6, 1000), 10.0 ** rng.uniform(-300, 0, 200)])
    return np.concatenate([spread, near[np.abs(near) <= 1e6], [0.0, 1e6, -1e6]])


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_two_ulp(name):
    x = arguments()
    got = np.asarray(jax.jit(getattr(elementary, name))(jnp.asarray(x)))
    for value, found in zip(x, got, strict=True):
        exact = getattr(mpmath, name)(mpmath.mpf(float(value)))
        ulp = np.spacing(abs(float(exact))) or 5e-324
        assert abs(mpmath.mpf(float(found)) - exact) <= 2 * mpmath.mpf(float(ulp)), value


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_beyond_it_is_the_library(name):
    """One large argument sends the whole vector there; what is no number stays none."""
    x = jnp.array([0.3, 1e6 + 1, -7e12, 3e300])
    function, library = getattr(elementary, name), getattr(jnp, name)
    np.testing.assert_array_equal(jax.jit(function)(x), jax.jit(library)(x))
    assert np.isnan(jax.jit(function)(jnp.array([jnp.inf, jnp.nan, 1.0]))).tolist() == [True, True, False]
