"""Energies of two centres, functions of their distance alone: forces, no torques.

    lennard_jones             4ε [(σ/r)¹² − (σ/r)⁶]
    weeks_chandler_andersen   the same + ε up to its minimum at 2^{1/6} σ, and 0 beyond
    yukawa                    ε e^{−κ(r − σ)} σ/r
    coulomb                   C q_i q_j / r
    tabulated                 a cubic spline through given values

Of bodies that differ, σ_ij = (σ_i + σ_j)/2 and ε_ij = √(ε_i ε_j) (Lorentz and Berthelot). They act on points, mechanical(Euclidean(3) ** K, ...), as
well as on the centres of rigid bodies. A cutoff c multiplies the energy by S(r), which falls from 1 at b to 0 at c with two continuous derivatives:

    S = 1 − s³ (10 − 15 s + 6 s²),     s = (r² − b²)/(c² − b²),     b = 0.8 c unless cutoff=(b, c)
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers, per_body
from bismut.mechanics.bodies.box import Cutoff, cutoff_of
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.bodies.terms import Potential
from bismut.registry import PAIR_ENERGIES

_TOUCH = 2 ** (1 / 6)  # where the Lennard-Jones energy is least, over σ


@PAIR_ENERGIES.register
def lennard_jones(epsilon: Any = 1.0, sigma: Any = 1.0, *, cutoff: Any = None) -> Potential:
    """U = Σ_{i<j} 4ε [(σ/r)¹² − (σ/r)⁶].

    epsilon  ε, an energy, one for all bodies or (K,)
    sigma    σ, a length, one for all bodies or (K,)
    cutoff   where it has faded to zero, a length (fading from 0.8 of it on), or the two lengths between which it fades
    """
    mixed = _Mixed(epsilon, sigma)

    def energy(pair, t, parameters):
        depth, size = mixed.of(pair)
        six = (size * size * pair.inverse) ** 3
        return 4 * depth * six * (six - 1)

    return mixed.potential(energy, "Lennard-Jones", cutoff_of(cutoff))


@PAIR_ENERGIES.register
def weeks_chandler_andersen(epsilon: Any = 1.0, sigma: Any = 1.0) -> Potential:
    """U = Σ_{i<j} 4ε [(σ/r)¹² − (σ/r)⁶] + ε up to r = 2^{1/6} σ, and 0 beyond: the repulsion alone. Its force is continuous.

    epsilon, sigma  as for lennard_jones
    """
    mixed = _Mixed(epsilon, sigma)

    def energy(pair, t, parameters):
        depth, size = mixed.of(pair)
        six = (size * size * pair.inverse) ** 3
        return jnp.where(six > 0.5, 4 * depth * six * (six - 1) + depth, 0.0)

    reach = _TOUCH * float(np.max(mixed.sigma)) if isinstance(mixed.sigma, np.ndarray) else None
    return mixed.potential(energy, "Weeks–Chandler–Andersen", None if reach is None else Cutoff(reach, 1.01 * reach))


@PAIR_ENERGIES.register
def yukawa(epsilon: Any = 1.0, kappa: Any = 1.0, sigma: Any = 0.0, *, cutoff: Any = None) -> Potential:
    """U = Σ_{i<j} ε e^{−κ(r − σ)} σ/r, or ε e^{−κr}/r where σ = 0: screened charges.

    epsilon  ε: the energy at contact, r = σ; of point charges energy · length
    kappa    κ, the inverse of the screening length
    sigma    σ, the diameter
    cutoff   as for lennard_jones
    """
    epsilon, kappa, sigma = numbers("epsilon", epsilon), numbers("kappa", kappa, positive=True), numbers("sigma", sigma)
    if any(np.ndim(value) for value in (epsilon, kappa, sigma)):
        raise ShapeError("yukawa takes one number for each of epsilon, kappa and sigma. Use pair_potential for bodies that differ.")

    def energy(pair, t, parameters):
        real = lambda value: jnp.asarray(value, pair.r2.dtype)
        size = real(sigma)
        return real(epsilon) * jnp.where(size > 0, size, 1.0) * pair.near * jnp.exp(-real(kappa) * (pair.r2 * pair.near - size))

    return Potential.of(PairTerm(energy, lambda x, R: (), "Yukawa", cutoff=cutoff_of(cutoff)))


@PAIR_ENERGIES.register
def coulomb(charges: Any, constant: Any = 1.0, *, cutoff: Any = None) -> Potential:
    """U = C Σ_{i<j} q_i q_j / r.

    charges   q, (K,)
    constant  C, energy · length / charge²: 1/4πε₀, or 1 in reduced units
    cutoff    as for lennard_jones. In a box the sum over images is left out with it, which a cutoff alone does not converge to
    """
    charges, constant = numbers("charges", charges), numbers("constant", constant)
    energy = lambda pair, t, parameters: jnp.asarray(constant, pair.r2.dtype) * pair.a * pair.b * pair.near
    return Potential.of(PairTerm(energy, lambda x, R: per_body("charges", charges, x), "Coulomb", cutoff=cutoff_of(cutoff)))


@PAIR_ENERGIES.register
def tabulated(distances: Any, energies: Any) -> Potential:
    """U = Σ_{i<j} u(r), u the cubic spline through given values; 0 beyond the last distance, to which it fades within the last cell.

    distances  r, (n,), equally spaced, n ≥ 4
    energies   u, (n,)

    Nearer than the first distance u goes on as a straight line.
    """
    r, u = np.asarray(numbers("distances", distances, positive=True)), np.asarray(numbers("energies", energies))
    if r.ndim != 1 or r.shape != u.shape or len(r) < 4:
        raise ShapeError(f"distances and energies must be two arrays (n,) with n ≥ 4, got shapes {r.shape} and {u.shape}.")
    step = (r[-1] - r[0]) / (len(r) - 1)
    if not (step > 0 and np.allclose(np.diff(r), step, rtol=1e-6)):
        raise DomainError("distances must be equally spaced and rising: np.linspace(begin, end, n).")
    spline = scipy.interpolate.CubicSpline(r, u)  # imported here: 0.3 s
    rows = np.ascontiguousarray(spline.c[::-1].T)  # (n − 1, 4): u = Σ_k rows[cell, k] (r − r_cell)^k
    slope = float(spline(r[0], 1))

    def energy(pair, t, parameters):
        distance = pair.r2 * pair.near
        place = (distance - r[0]) / step
        cell = jnp.clip(jnp.floor(jax.lax.stop_gradient(place)), 0, len(rows) - 1)
        a, b, c, d = jnp.asarray(rows, distance.dtype)[cell.astype(jnp.int32)]
        x = distance - (r[0] + step * cell)
        return jnp.where(place < 0, u[0] + slope * (distance - r[0]), a + x * (b + x * (c + x * d)))

    return Potential.of(PairTerm(energy, lambda x, R: (), "table", cutoff=Cutoff(float(r[-2]), float(r[-1]))))


class _Mixed:
    """ε and σ of bodies, and how two of them mix; numbers that all bodies share are constants of the program."""

    def __init__(self, epsilon: Any, sigma: Any):
        self.epsilon, self.sigma = numbers("epsilon", epsilon, positive=True), numbers("sigma", sigma, positive=True)
        self.alike = np.ndim(self.epsilon) == np.ndim(self.sigma) == 0

    def of(self, pair) -> tuple[Any, Any]:
        if self.alike:
            return jnp.asarray(self.epsilon, pair.r2.dtype), jnp.asarray(self.sigma, pair.r2.dtype)
        (root, size), (other, length) = pair.a, pair.b
        return root * other, 0.5 * (size + length)

    def view(self, x, R) -> Any:
        if self.alike:
            return ()
        depth = per_body("epsilon", self.epsilon, x)
        root = np.sqrt(depth) if isinstance(depth, np.ndarray) else jnp.sqrt(depth)
        return root, per_body("sigma", self.sigma, x)

    def potential(self, energy, name: str, cutoff: Cutoff | None) -> Potential:
        return Potential.of(PairTerm(energy, self.view, name, cutoff=cutoff, extent=(self.sigma, self.sigma)))
