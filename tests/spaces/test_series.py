"""The functions of z = θ² and their first three derivatives are right to 1e−13, at 0, at the borders of the series and beyond.

Errors are relative to |f⁽ⁿ⁾| + |z f⁽ⁿ⁺¹⁾|, what rounding z alone would change: sinc has a zero at π², where no relative accuracy exists.
"""

from functools import cache

import jax
import mpmath as mp
import numpy as np
import pytest

from bismut.spaces import series

from .catalogue import batched

TOLERANCE = {0: 1e-13, 1: 1e-13, 2: 1e-13, 3: 5e-13}  # the closed forms lose ε/z³ in the third derivative just above their border
ORDERS = 4
ARGUMENTS = [0.0, 1e-300, 1e-16, 1e-8, 1e-3, 0.0999, 0.1001, 0.5, 0.999999, 1.000001, 4.0, 9.8]
EXACT = {
    "sinc": lambda t: mp.sin(t) / t,
    "versine": lambda t: (1 - mp.cos(t)) / t**2,
    "residue": lambda t: (t - mp.sin(t)) / t**3,
    "cotangent": lambda t: (1 - t / 2 * mp.cot(t / 2)) / t**2,
    "arctangent": lambda t: mp.atan(t) / t,
}
FUNCTIONS = list(EXACT)


@cache
def exact_derivatives(name, z):
    """f, f′, ... by Cauchy's integral over a circle of radius r = 1/20, on which f is analytic and θ ≠ 0: exact to 20⁻ⁿ for n nodes."""
    with mp.workdps(40):
        nodes, r = 32, mp.mpf(1) / 20
        turn = [mp.expjpi(mp.mpf(2 * k + 1) / nodes) for k in range(nodes)]
        value = [EXACT[name](mp.sqrt(mp.mpf(z) + r * e)) for e in turn]
        return [mp.factorial(n) / nodes / r**n * mp.re(mp.fsum(v / e**n for v, e in zip(value, turn, strict=True))) for n in range(ORDERS + 1)]


@cache
def computed_derivatives(name):
    """f, f′, f″, f‴ at all arguments, by reverse-mode differentiation as schemes use it. Each level hands on what the one below has found."""

    def raised(g):
        def derivative(z):
            (top, lower), slope = jax.value_and_grad(g, has_aux=True)(z)
            return slope, (*lower, top)

        return derivative

    g = lambda z: (getattr(series, name)(z), ())
    for _ in range(ORDERS - 1):
        g = raised(g)
    third, lower = batched(g)(np.array(ARGUMENTS))
    return np.stack([*lower, third], axis=-1)


@pytest.mark.parametrize("order", range(ORDERS))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name, order):
    errors = {}
    for z, got in zip(ARGUMENTS, computed_derivatives(name), strict=True):
        exact = exact_derivatives(name, z)
        errors[z] = float(abs(got[order] - exact[order]) / (abs(exact[order]) + abs(z * exact[order + 1])))
    assert {z: error for z, error in errors.items() if not error < TOLERANCE[order]} == {}
