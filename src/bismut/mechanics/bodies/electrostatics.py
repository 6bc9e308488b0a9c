"""What charges do beyond a cutoff.

    ReactionField   u = 1/r + k r² − w,       k = (ε − 1)/((2ε + 1) c³),   w = 1/c + k c²         a medium of dielectric constant ε beyond c
    Ewald           u = erfc(αr)/r  within c,  and waves:
                    U = (2π/V) Σ_{k≠0} e^{−k²/4α²}/k² |Σ_j q_j e^{ik·y_j}|² − own part + 2π |M|²/((2ε + 1) V)

Both say what replaces 1/r between two unit charges. In an Ewald sum the wave part also holds each charge with itself and the charges of one body with
each other, which do not act: α Σ q²/√π and Σ q q' erf(αr)/r are taken off. ε = ∞ is a lattice inside a conductor (tin foil), ε = 1 one in vacuum, M
the dipole moment of the box. M is that of places as they are, which are never wrapped: for neutral bodies it does not matter in which image they
are, but an ion that is taken to its image a side l away changes M by q l, and U by 2π(|M + q l|² − |M|²)/((2ε + 1) V) where ε is finite. Along a
path U is continuous, and energy is conserved; two states that differ by images are different states of a polarised lattice. The accuracy δ fixes
the splitting: e^{−(αd)²} = δ and e^{−(k/2α)²} = δ, where charges that see nothing of each other are at least d apart: the cutoff less twice the
size of bodies, as cutoffs are between centres. Bodies of several charges take δ/30, as the forces on them nearly cancel, and dipoles δ/100.
Measured on random boxes, forces err by less than δ, relative to their root mean square.

The accuracy does not choose the cutoff c. Pairs cost ∝ c³ and waves ∝ 1/c³, so operations are fewest where both cost the same. The default, half of
the shortest side, is near that up to some thousand charges (N = 1000, δ = 1e−5: 46 % of operations are those of waves), and too large for more: of
4096 charges (17 %) c = 3/8 of the side saves a quarter of all operations. It stays the default because energies depend on it, within δ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import is_number
from bismut.errors import DomainError
from bismut.mechanics.bodies.box import Box, Cutoff
from bismut.programs.codegen.elementary.numbers import elementary

_FADE = 0.95  # of the cutoff: from where the near part of an Ewald sum, by then as small as the accuracy, fades
_MOST_WAVES = 200_000


def _check_dielectric(name: str, value: Any) -> None:
    if not (np.ndim(value) == 0 and value >= 1):
        raise DomainError(f"{name} needs a dielectric constant ≥ 1, or inf for a conductor, got {value!r}.")


@dataclass(frozen=True)
class ReactionField:
    """Beyond the cutoff lies a medium of dielectric constant ε: u = 1/r + k r² − w, whose force at the cutoff vanishes if ε is infinite.

    dielectric  ε ≥ 1; inf is a conductor
    """

    dielectric: float = np.inf

    def __post_init__(self):
        _check_dielectric("ReactionField", self.dielectric)

    def within(self, cutoff: Cutoff | None) -> Callable:
        """u(r², 1/r) with that cutoff."""
        if cutoff is None:
            raise DomainError("A reaction field is that of what lies beyond a cutoff. Give cutoff=.")
        stiffness = (0.5 if np.isinf(self.dielectric) else (self.dielectric - 1) / (2 * self.dielectric + 1)) / cutoff.end**3
        level = 1 / cutoff.end + stiffness * cutoff.end**2
        return lambda r2, near: near + stiffness * r2 - level


@dataclass(frozen=True)
class Ewald:
    """The sum over all images of a periodic box.

    accuracy    δ: of forces, relative to their root mean square
    dielectric  ε of what surrounds the lattice: inf is a conductor (tin foil), 1 vacuum. If it is finite, U depends on which image an ion is in
                (through M, the moment of unwrapped places), so start with all ions in one box; neutral bodies may be in any
    """

    accuracy: float = 1e-5
    dielectric: float = np.inf

    def __post_init__(self):
        _check_dielectric("Ewald", self.dielectric)
        if not (is_number(self.accuracy) and 1e-15 <= self.accuracy <= 0.1):
            raise DomainError(f"accuracy must be between 1e-15 and 0.1, got {self.accuracy!r}.")

    def cutoff(self, asked: Cutoff | None, box: Box) -> Cutoff:
        """The cutoff of the near part: the one asked for, or half of the shortest side."""
        end = min(box.lengths) / 2 if asked is None else asked.end
        return Cutoff(_FADE * end, end)

    def splitting(self, asked: Cutoff | None, box: Box, size: float, margin: float = 1.0) -> EwaldSplitting:
        """How the sum is split in a box, for charges up to `size` from the centres of their bodies; `margin` divides the accuracy."""
        if len(box.lengths) != 3 or not np.isfinite(box.lengths).all():
            raise DomainError(f"An Ewald sum needs a box that is periodic along three axes, got {box}.")
        reach = self.cutoff(asked, box).begin - 2 * size
        if reach <= 0:
            raise DomainError(
                f"The cutoff of an Ewald sum must exceed twice the size of bodies, whose charges are {size:g} from their centres. Make it larger."
            )
        digits = np.sqrt(-elementary("log", self.accuracy / margin))
        alpha, shortest = digits / reach, 2 * digits * digits / reach
        sides = np.array(box.lengths)
        if (2 / 3 * np.pi * np.prod(shortest * sides / (2 * np.pi))) > _MOST_WAVES:
            raise DomainError(
                f"An Ewald sum of accuracy {self.accuracy:g} in {box} has more than {_MOST_WAVES} wave vectors with a cutoff of "
                f"{reach + 2 * size:.4g}. Make the cutoff larger or the accuracy coarser."
            )
        most = np.floor(shortest * sides / (2 * np.pi)).astype(int)
        grid = np.stack(np.meshgrid(*[np.arange(-n, n + 1) for n in most], indexing="ij"), -1).reshape(-1, 3)
        half = grid[len(grid) // 2 + 1 :]  # of k and −k one
        waves = 2 * np.pi * half / sides
        return EwaldSplitting(alpha, waves[(waves**2).sum(1) <= shortest**2])


class EwaldSplitting(NamedTuple):
    """α, and the wave vectors (n, 3), of k and −k one."""

    alpha: float
    waves: np.ndarray

    def near(self, r2, near):
        """erfc(αr)/r."""
        return jax.lax.erfc(self.alpha * r2 * near) * near

    def far(self, r2, near):
        """erf(αr)/r: what the waves hold of two charges."""
        return jax.lax.erf(self.alpha * r2 * near) * near

    def dipoles(self, m, n, r, r2, inverse, near):
        """m·n B − (m·r)(n·r) C, the near part of two dipoles."""
        bare = self.near(r2, near) * inverse
        smooth = 2 * self.alpha / np.sqrt(np.pi) * jnp.exp(-(self.alpha**2) * r2) * inverse
        b = bare + smooth
        return m @ n * b - (m @ r) * (n @ r) * (3 * b * inverse + 2 * self.alpha**2 * smooth)


DIPOLE_MARGIN, BODY_MARGIN = 100.0, 30.0

Electrostatics = ReactionField | Ewald
