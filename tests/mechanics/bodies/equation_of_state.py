"""The Lennard-Jones fluid as published: J. K. Johnson, J. A. Zollweg & K. E. Gubbins, Mol. Phys. 78, 591 (1993).

    A_res/N = Σ_{i ≤ 8} a_i ρ^i/i + Σ_{i ≤ 6} b_i G_i,      G_i = ∫_0^ρ ρ^{2i−1} e^{−3ρ²} dρ,       P = ρT + ρ² ∂A/∂ρ,     U = A − T ∂A/∂T

A modified Benedict–Webb–Rubin equation; a_i and b_i are polynomials in 1/T with the 32 numbers of their table 10.
"""

from typing import NamedTuple

import numpy as np

_X = np.array(
    [
        *(0.8623085097507421, 2.976218765822098, -8.402230115796038, 0.1054136629203555, -0.8564583828174598, 1.582759470107601, 0.7639421948305453),
        *(1.753173414312048, 2.798291772190376e3, -4.8394220260857657e-2, 0.9963265197721935, -36.98000291272493, 20.84012299434647),
        *(83.05402124717285, -957.4799715203068, -147.7746229234994, 63.98607852471505, 16.03993673294834, 68.05916615864377, -2.791293578795945e3),
        *(-6.245128304568454, -8.116836104958410e3, 14.88735559561229, -1.059346754655084e4, -113.1607632802822, -8.867771540418822e3),
        *(-39.86982844450543, -4.689270299917261e3, 259.3535277438717, -2.694523589434903e3, -721.8487631550215, 172.1802063863269),
    ]
)
# Powers of T that go with the 32 numbers, coefficient by coefficient.
_A = ((1, 0.5, 0, -1, -2), (1, 0, -1, -2), (1, 0, -1), (0,), (-1, -2), (-1,), (-1, -2), (-2,))
_B = ((-2, -3), (-2, -4), (-2, -3), (-2, -4), (-2, -3), (-2, -3, -4))


class LennardJonesState(NamedTuple):
    """P and the potential energy of a point, in reduced units."""

    pressure: float
    energy: float


def johnson_zollweg_gubbins(density: float, temperature: float) -> LennardJonesState:
    """The state at ρ* and T*, derivatives by central differences."""
    free, h = _free_energy, 1e-5
    slope = (free(density * (1 + h), temperature) - free(density * (1 - h), temperature)) / (2 * h * density)
    heat = (free(density, temperature * (1 + h)) - free(density, temperature * (1 - h))) / (2 * h)
    return LennardJonesState(density * temperature + density**2 * slope, free(density, temperature) - heat)


def _free_energy(rho: float, T: float) -> float:
    numbers, total = iter(_X), 0.0
    for i, powers in enumerate(_A, 1):
        total += sum(next(numbers) * T**power for power in powers) * rho**i / i
    nodes, weights = np.polynomial.legendre.leggauss(40)
    places = 0.5 * rho * (nodes + 1)
    for i, powers in enumerate(_B, 1):
        integral = 0.5 * rho * weights @ (places ** (2 * i - 1) * np.exp(-3 * places**2))
        total += sum(next(numbers) * T**power for power in powers) * integral
    return total
