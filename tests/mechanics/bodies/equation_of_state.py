"""The Lennard-Jones fluid as published, by two equations of its residual free energy.

    P = ρT + ρ² ∂A/∂ρ,     U = A − T ∂A/∂T

J. K. Johnson, J. A. Zollweg & K. E. Gubbins, Mol. Phys. 78, 591 (1993), a modified Benedict–Webb–Rubin equation; a_i and b_i are polynomials in 1/T
with the 32 numbers of their table 10:

    A = Σ_{i ≤ 8} a_i ρ^i/i + Σ_{i ≤ 6} b_i G_i,      G_i = ∫_0^ρ ρ^{2i−1} e^{−3ρ²} dρ

J. Kolafa & I. Nezbeda, Fluid Phase Equil. 100, 1 (1994), hard spheres of the diameter d(T), the rest ΔB of the second virial coefficient, and a
polynomial; the better one of dense liquids:

    A = T [5/3 ln(1 − η) + η(34 − 33η + 4η²)/(6(1 − η)²) + ρ ΔB(T) e^{−γρ²}] + Σ_{ij} C_ij T^{i/2} ρ^j,      η = πρd³/6
"""

from collections.abc import Callable
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

# Kolafa & Nezbeda: d and ΔB by powers of √T, and C by the power of √T and then by powers of ρ from the second on.
_GAMMA, _LOGARITHM = 1.92907278, -0.063920968
_DIAMETER = {-2: 0.011117524, -1: -0.076383859, 0: 1.080142248, 1: 0.000693129}
_VIRIAL = {-7: -0.58544978, -6: 0.43102052, -5: 0.87361369, -4: -4.13749995, -3: 2.90616279, -2: -7.02181962, 0: 0.02459877}
_C = {
    0: (2.01546797, -28.17881636, 28.28313847, -10.42402873),
    -1: (-19.58371655, 75.62340289, -120.70586598, 93.92740328, -27.37737354),
    -2: (29.34470520, -112.35356937, 170.64908980, -123.06669187, 34.42288969),
    -4: (-13.37031968, 65.38059570, -115.09233113, 88.91973082, -25.62099890),
}


class LennardJonesState(NamedTuple):
    """P and the potential energy of a point, in reduced units."""

    pressure: float
    energy: float


def johnson_zollweg_gubbins(density: float, temperature: float) -> LennardJonesState:
    """The state at ρ* and T*."""
    return _state(_benedict_webb_rubin, density, temperature)


def kolafa_nezbeda(density: float, temperature: float) -> LennardJonesState:
    """The state at ρ* and T*."""
    return _state(_spheres_and_more, density, temperature)


def _state(free: Callable[[float, float], float], density: float, temperature: float) -> LennardJonesState:
    """Derivatives by central differences."""
    h = 1e-5
    slope = (free(density * (1 + h), temperature) - free(density * (1 - h), temperature)) / (2 * h * density)
    heat = (free(density, temperature * (1 + h)) - free(density, temperature * (1 - h))) / (2 * h)
    return LennardJonesState(density * temperature + density**2 * slope, free(density, temperature) - heat)


def _benedict_webb_rubin(rho: float, T: float) -> float:
    numbers, total = iter(_X), 0.0
    for i, powers in enumerate(_A, 1):
        total += sum(next(numbers) * T**power for power in powers) * rho**i / i
    nodes, weights = np.polynomial.legendre.leggauss(40)
    places = 0.5 * rho * (nodes + 1)
    for i, powers in enumerate(_B, 1):
        integral = 0.5 * rho * weights @ (places ** (2 * i - 1) * np.exp(-3 * places**2))
        total += sum(next(numbers) * T**power for power in powers) * integral
    return total


def _spheres_and_more(rho: float, T: float) -> float:
    series = lambda numbers: sum(number * T ** (power / 2) for power, number in numbers.items())
    eta = np.pi / 6 * rho * (series(_DIAMETER) + _LOGARITHM * np.log(T)) ** 3
    spheres = 5 / 3 * np.log(1 - eta) + eta * (34 - 33 * eta + 4 * eta**2) / (6 * (1 - eta) ** 2)
    polynomial = sum(number * T ** (i / 2) * rho**j for i, numbers in _C.items() for j, number in enumerate(numbers, 2))
    return T * (spheres + rho * series(_VIRIAL) * np.exp(-_GAMMA * rho**2)) + polynomial
