"""`read_structure`: a configuration that some other program wrote, through ASE, which reads nearly all formats of chemistry.

    file  ↦  places (n, d), elements, masses, box

ASE has lengths in ångströms and masses in daltons; `units` makes plain numbers of them. The box is rectangular here: a tilted one is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from bismut.errors import BismutError
from bismut.mechanics import Box
from bismut.sharing.formats import require
from bismut.units import Units


class Structure(NamedTuple):
    """Atoms as a file has them.

    places    (n, 3)
    elements  (n,) names
    masses    (n,)
    box       the periodic Box, inf along open axes; None without one
    """

    places: np.ndarray
    elements: tuple[str, ...]
    masses: np.ndarray
    box: Box | None

    def __repr__(self) -> str:
        names, counts = np.unique(self.elements, return_counts=True)
        formula = " ".join(f"{name}{count if count > 1 else ''}" for name, count in zip(names, counts, strict=True))
        return f"Structure({formula}, {'open' if self.box is None else self.box})"

    @property
    def species(self) -> np.ndarray:
        """(n,) the number of each atom's element, elements being numbered in the order of the alphabet."""
        return np.unique(self.elements, return_inverse=True)[1]


def read_structure(file: str | Path, *, frame: int = -1, units: Units | None = None) -> Structure:
    """Places, elements, masses and box of a configuration, from any format that ASE reads: PDB, CIF, POSCAR, extended XYZ, LAMMPS data, ...

    frame  which one; -1 is the last
    units  such as bismut.units.molecular, in whose numbers lengths and masses are given; by default they are ångströms and daltons
    """
    file = Path(file)
    if not file.is_file():
        raise BismutError(f"There is no file {file}.")
    ase = require("ase.io", "Reading structures")
    try:
        atoms = ase.read(str(file), index=frame)
    except Exception as problem:  # whatever a reader raises for a damaged file
        lines = str(problem).strip().splitlines()
        raise BismutError(f"{file} cannot be read by ASE: {lines[0][:200] if lines else type(problem).__name__}.") from problem
    length, mass = (lambda x: x, lambda x: x) if units is None else (lambda x: units.reduced(x, "angstrom"), lambda x: units.reduced(x, "dalton"))
    cell, periodic = np.asarray(atoms.cell[:], float), np.asarray(atoms.pbc, bool)
    diagonal = np.diag(cell)
    if periodic.any() and np.abs(cell - np.diag(diagonal)).max() > 1e-9 * np.abs(cell).max():
        raise BismutError(f"{file} has a tilted box, {cell.tolist()}; boxes have right angles here.")
    if (periodic & (diagonal <= 0)).any():
        raise BismutError(f"{file} is periodic along an axis of length 0: {diagonal.tolist()}.")
    places, masses = np.asarray(atoms.positions, float), np.asarray(atoms.get_masses(), float)
    if len(places) == 0 or not np.isfinite(places).all():
        raise BismutError(f"{file} holds no atoms, or places that are not finite.")
    box = Box(np.where(periodic, length(np.where(periodic, diagonal, 1.0)), np.inf)) if periodic.any() else None
    return Structure(np.asarray(length(places)), tuple(atoms.get_chemical_symbols()), np.asarray(mass(masses)), box)
