"""Energies of pairs of bodies.

    pair_potential   U = Σ_{i<j} u(a_i, a_j)                     the user's own
    soft_spheres     U = ε Σ_{i<j} (σ_ij / r)ⁿ,      σ_ij = (σ_i + σ_j)/2
    dipoles          U = C Σ_{i<j} [ m_i·m_j / r³ − 3 (m_i·r)(m_j·r) / r⁵ ],      m_i = R_i d_i,   r = x_j − x_i
    springs          U = Σ_s ½ k_s (|y_s − z_s| − l_s)²,      y_s = x_i + R_i a_s,   z_s = x_j + R_j b_s

Soft spheres repel between centres: forces, no torques; ε at contact, r = σ_ij. Dipoles are magnetic or electric, with moments d_i fixed in the
bodies: C = μ₀/4π with moments in A·m² and B in tesla, or 1/4πε₀ with moments in C·m and B the electric field in V/m; C = 1 in reduced units. A pair
head to tail has the energy −2m²/r³, which has no floor: add a repulsion, such as `soft_spheres`. A spring with rest length 0 is ½ k |y − z|², smooth
where its ends meet; any other is not defined there. Gay–Berne has a file of its own.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.body_loops import Bonds
from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers, per_body, turned, vectors
from bismut.mechanics.bodies.box import cutoff_of
from bismut.mechanics.bodies.electrostatics import Ewald
from bismut.mechanics.bodies.pairs import PairTerm, Placed
from bismut.mechanics.bodies.sites import dipole_sum
from bismut.mechanics.bodies.terms import Potential
from bismut.mechanics.function import required_function
from bismut.registry import PAIR_ENERGIES


def pair_potential(energy: Callable, data: Any = None, *, cutoff: Any = None, box: Any = None) -> Potential:
    """U = Σ_{i<j} u(a, b) with a, b `Placed` bodies: a.x (3,), a.R (3, 3), and a.data if data, a tree of arrays (K, ...), is given.

    u returns one number, an energy, and may name t and parameters. It need not vanish or be finite for a body and itself. For points, as in
    mechanical(Euclidean(3) ** K, potential=pair_potential(...)), a.R is None.

    cutoff  a length beyond which u is zero; it fades from 0.8 of it on, or between the two lengths of a pair
    box     a periodic box: b.x is the image of b nearest to a
    """
    u = required_function("The pair energy", energy, ("a", "b"))

    def value(pair, t, parameters):
        a, b = (Placed(x, *data) for x, data in ((pair.x, pair.a), (pair.y, pair.b)))
        one = jnp.asarray(u(a, b, t=t, parameters=parameters))
        if one.shape != ():
            raise ShapeError(f"The pair energy must return one number, got an array of shape {one.shape}. Sum over its components.")
        return one

    name = f"pair energy {getattr(energy, '__name__', 'u')}".replace("<lambda>", "u")
    potential = Potential.of(PairTerm(value, orientation_and_data(data), name, cutoff=cutoff_of(cutoff), wants=u.wants))
    return potential if box is None else potential.inside(box)


def orientation_and_data(data: Any) -> Callable:
    """What a pair term sees of the bodies: their orientations, and data of theirs."""
    return lambda x, R: (R, jax.tree.map(lambda leaf: _data_of_bodies(leaf, x), data, is_leaf=lambda part: isinstance(part, list)))


def _data_of_bodies(leaf, x):
    """Data of all bodies as an array; whole numbers, such as species, stay whole."""
    array = jnp.asarray(leaf)
    if array.shape[:1] != x.shape[:1]:
        raise ShapeError(f"data must hold arrays whose first axis is the {x.shape[0]} bodies, got shape {array.shape}.")
    return array.astype(x.dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array


@PAIR_ENERGIES.register
def soft_spheres(diameter: Any = 1.0, strength: Any = 1.0, exponent: int = 12, *, cutoff: Any = None) -> Potential:
    """U = ε Σ_{i<j} ((σ_i + σ_j)/2r)ⁿ.

    diameter  σ, a length, one for all bodies or (K,)
    strength  ε, an energy
    exponent  n, a whole number ≥ 1
    cutoff    where it has faded to zero, a length (fading from 0.8 of it on), or the two lengths between which it fades
    """
    if not isinstance(exponent, int | np.integer) or exponent < 1:
        raise DomainError(f"exponent must be a whole number ≥ 1, got {exponent!r}.")
    diameter, strength = numbers("diameter", diameter, positive=True), numbers("strength", strength)

    def energy(pair, t, parameters):
        sigma = 0.5 * (pair.a + pair.b)
        closeness = sigma * sigma * pair.inverse  # (σ/r)²: no root for an even exponent
        power = closeness ** (exponent // 2) * (sigma * pair.near if exponent % 2 else 1)
        return jnp.asarray(strength, power.dtype) * power

    view = lambda x, R: per_body("diameter", diameter, x)
    return Potential.of(PairTerm(energy, view, "soft spheres", cutoff=cutoff_of(cutoff)))


@PAIR_ENERGIES.register
def dipoles(moments: Any, constant: Any = 1.0, *, cutoff: Any = None, ewald: Ewald | None = None) -> Potential:
    """U = C Σ_{i<j} [m_i·m_j/r³ − 3(m_i·r)(m_j·r)/r⁵], m_i = R_i d_i.

    moments   d_i in the body, (3,) for all bodies or (K, 3)
    constant  C, in energy · length³ / moment²
    cutoff    where it has faded to zero, a length (fading from 0.8 of it on), or the two lengths between which it fades
    ewald     Ewald(...) for the sum over all images of a box
    """
    if ewald is not None:
        return dipole_sum(moments, constant, ewald, cutoff)
    moments, constant = vectors("moments", moments), numbers("constant", constant)

    def energy(pair, t, parameters):
        m, n, r = pair.a, pair.b, pair.r
        across = m @ n - 3 * (m @ r) * (n @ r) * pair.inverse
        return jnp.asarray(constant, r.dtype) * across * pair.inverse * pair.near

    return Potential.of(PairTerm(energy, lambda x, R: turned("moments", moments, x, R), "dipoles", cutoff=cutoff_of(cutoff)))


@PAIR_ENERGIES.register
def springs(ends: Any, stiffness: Any = 1.0, length: Any = 0.0, points: Any = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))) -> Potential:
    """U = Σ ½ k (|y − z| − l)², with ends y, z fixed in two bodies each.

    ends       the numbers (i, j) of the two bodies of each spring, (S, 2)
    stiffness  k, energy / length², one for all springs or (S,)
    length     l, rest lengths, one for all springs or (S,)
    points     where each spring is fixed in its two bodies, relative to their centres of mass, (2, 3) for all springs or (S, 2, 3)
    """
    pairs = np.asarray(ends)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ShapeError(f"ends must be whole numbers (S, 2), two bodies for each spring, got {pairs.dtype} of shape {pairs.shape}.")
    if (pairs < 0).any() or (pairs[:, 0] == pairs[:, 1]).any():
        raise DomainError(f"ends must name two different bodies 0 ... K − 1 for each spring, got {pairs.tolist()}.")
    count = len(pairs)
    k, l = (_per_spring(name, value, count, ()) for name, value in (("stiffness", stiffness), ("length", length)))
    where = _per_spring("points", points, count, (2, 3))
    slack = np.broadcast_to(np.asarray(length) == 0 if isinstance(l, np.ndarray) else False, (count,))
    central = isinstance(where, np.ndarray) and not where.any()  # fixed at centres of mass: orientations do not matter

    def energy(pair, t, parameters):
        k, l, (first, second) = (jnp.asarray(value, pair.r.dtype) for value in pair.own[:3])
        d = pair.r if central else pair.r + pair.b @ second - pair.a @ first
        d2 = d @ d
        if slack.all():
            return 0.5 * k * d2
        # The root is taken away from zero where it is not wanted, or its gradient would be 0 · ∞.
        unstretched = pair.own[3]
        stretch = jnp.sqrt(jnp.where(unstretched, 1.0, d2) if slack.any() else d2) - l
        return 0.5 * k * (jnp.where(unstretched, d2, stretch**2) if slack.any() else stretch**2)

    def view(x, R):
        if pairs.max(initial=-1) >= x.shape[0]:
            raise ShapeError(f"A spring ends in body {pairs.max()}, but the {x.shape[0]} bodies are numbered 0 ... {x.shape[0] - 1}.")
        return () if central else R

    return Potential.of(PairTerm(energy, view, "springs", (k, l, where, slack), Bonds(pairs[:, 0], pairs[:, 1])))


def _per_spring(name: str, value: Any, count: int, tail: tuple[int, ...]):
    array = numbers(name, value)
    if np.shape(array) not in (tail, (count, *tail)):
        raise ShapeError(f"{name} must have shape {tail} for all springs or {(count, *tail)}, one for each, got {np.shape(array)}.")
    return jnp.broadcast_to(array, (count, *tail)) if not isinstance(array, np.ndarray) else np.broadcast_to(array, (count, *tail))
