"""LAMMPS dump, text: LAMMPS, OVITO, VMD, MDAnalysis and ASE read it.

    ITEM: ATOMS id type [mol] [element] mass xu yu zu vx vy vz quatw quati quatj quatk angmomx angmomy angmomz c_inertia[1] ...

Quaternions are (w, i, j, k), those of principal axes; `angmom` is in the axes of space; positions are unwrapped (xu). Boundaries are pp where the
box repeats itself and ff where it is open. Sites of bodies have `mol`, the number of their body from 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bismut.sharing.formats import Format
from bismut.sharing.frames import Frames

_UNITS = "angstrom", "dalton", "fs"  # LAMMPS' `units real`


def write(frames: Frames, file: Path) -> list[Path]:
    columns = [(names.split(), values) for names, values in _columns(frames) if values is not None]
    # Names that are no elements would stop ASE, so they stay numbers of types.
    labels = {"id": range(1, len(frames.species) + 1), "type": frames.types + 1}
    labels |= {"mol": frames.molecule + 1} if frames.molecule is not None else {}
    labels |= {"element": frames.species} if frames.elements else {}
    names = " ".join([*labels, *(name for part, _ in columns for name in part)])
    prefixes = [" ".join(map(str, row)) for row in zip(*labels.values(), strict=True)]
    bounds = [f"{-side / 2!r} {side / 2!r}" for side in frames.sides.tolist()]
    flags = " ".join("pp" if one else "ff" for one in frames.periodic)
    with file.open("w", encoding="utf-8") as out:
        for t, (time, step) in enumerate(zip(frames.times, frames.steps, strict=True)):
            rows = np.concatenate([values[t] if values.ndim == 3 else values for _, values in columns], 1).tolist()
            head = ["ITEM: TIME", repr(float(time)), "ITEM: TIMESTEP", str(int(step)), "ITEM: NUMBER OF ATOMS", str(len(prefixes))]
            lines = [" ".join([prefix, *map(repr, row)]) for prefix, row in zip(prefixes, rows, strict=True)]
            out.write("\n".join([*head, f"ITEM: BOX BOUNDS {flags}", *bounds, f"ITEM: ATOMS {names}", *lines]) + "\n")
    return [file]


def _columns(frames: Frames) -> list[tuple[str, Any]]:
    return [
        ("mass", None if frames.mass is None else frames.mass[:, None]),
        ("xu yu zu", frames.x),
        ("vx vy vz", frames.v),
        ("quatw quati quatj quatk", frames.q),
        ("angmomx angmomy angmomz", frames.turning),
        ("c_inertia[1] c_inertia[2] c_inertia[3]", frames.moments),
    ]


FORMAT = Format("lammpstrj", (".lammpstrj", ".dump"), "LAMMPS dump, text with all digits: LAMMPS, OVITO, VMD", True, write, units=_UNITS)
