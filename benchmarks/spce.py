"""SPC/E water with an Ewald sum, here and in LAMMPS, on one potential: energy, forces, torques and virial of a configuration; ⟨U⟩ and g_OO(r).

    U = Σ 4ε [(σ/r_OO)¹² − (σ/r_OO)⁶], cut at 0.9 nm, + C Σ q_a q_b / r_ab in a periodic box within a conductor

python -m benchmarks.spce                averages of both programs, written to docs/data/spce-lammps.csv; needs lammps and mpich beside bismut

Lennard-Jones energies are cut where 0.9 nm lie between the centres of mass here, between oxygens in LAMMPS: pairs within 0.013 nm of the cutoff may
be counted by one alone, with 0.005 kJ/mol each. LAMMPS counts in Å and kcal/mol; a calorie is 4.184 J in both.
"""

import argparse
import csv
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from scipy import constants

import bismut as bm
from benchmarks.peers.lammps import engine, with_data
from bismut.gallery.water import COULOMB, KT, on_a_lattice, water_model
from bismut.programs.evaluation import evaluate

KCAL, ATMOSPHERE = 4.184, 1.01325  # kJ, bar
BAR = 1e3 / constants.N_A / 1e-27 / 1e5  # of kJ/mol/nm³
CUTOFF, BINS, RATE = 0.9, 90, 5.0  # nm, of g(r), 1/ps
DATA = Path(__file__).parents[1] / "docs" / "data" / "spce-lammps.csv"
MODEL = water_model(3)


def side_of(molecules: int) -> float:
    """Of a cube, in nm, at 0.997 g/cm³."""
    return (molecules / 33.3278) ** (1 / 3)


class Configuration(NamedTuple):
    """U in kJ/mol, forces on centres and torques about them in space, (molecules, 3) in kJ/mol/nm and kJ/mol, and −Σ ∂U/∂x·x/3V of centres in bar."""

    energy: float
    force: np.ndarray
    torque: np.ndarray
    virial: float


def here(molecules: int, side: float, accuracy: float, fade: float) -> bm.System:
    """The system in a cube, its Lennard-Jones energies taken to nought over the last `fade` nm before the cutoff."""
    first = np.eye(3)[0]
    energy = bm.sites(
        MODEL.shape.points,
        charges=MODEL.charges,
        epsilon=MODEL.epsilon * first,
        sigma=MODEL.sigma * first,
        constant=COULOMB,
        electrostatics=bm.Ewald(accuracy),
        cutoff=(CUTOFF - fade, CUTOFF),
    )
    inertia = np.tile(MODEL.shape.moments, (molecules, 1))
    return bm.rigid_bodies(mass=np.full(molecules, MODEL.shape.mass), inertia=inertia, potential=energy, box=side)


def configuration(x: np.ndarray, R: np.ndarray, side: float, accuracy: float) -> Configuration:
    """Of centres x in nm and orientations R, by this library."""
    system = here(len(x), side, accuracy, 1e-6)
    space, q = system.space, (jax.numpy.asarray(x), jax.numpy.asarray(R))
    energy, (slope, turn) = evaluate(jax.value_and_grad(lambda e: system.potential(space.nudge(q, e), 0.0)), space.zero())
    scheme = bm.Verlet(system)
    still = scheme.start(q, momentum=(np.zeros(x.shape), np.zeros(x.shape)))
    torque = np.einsum("kij,kj->ki", R, -np.asarray(turn))
    return Configuration(float(energy), -np.asarray(slope), torque, BAR * float(evaluate(lambda state: bm.pressure(scheme, state), still)))


def configuration_in_lammps(x: np.ndarray, R: np.ndarray, side: float, accuracy: float) -> Configuration:
    """The same by LAMMPS. Its virial is that of atoms, Σ f_a·r_a; that of centres is less by Σ f_a·(r_a − x)."""
    one = lammps_water(x, R, side, accuracy)
    one.command("run 0 post no")
    places = np.asarray(bm.points_of(x, R, MODEL.shape.points))
    force = 10 * KCAL * np.array(one.gather_atoms("f", 1, 3)).reshape(places.shape)
    arms = places - x[:, None]
    virial = ATMOSPHERE * one.get_thermo("press") - BAR * float((force * arms).sum()) / (3 * side**3)
    return Configuration(KCAL * one.get_thermo("pe"), force.sum(1), np.cross(arms, force).sum(1), virial)


def lammps_water(x: np.ndarray, R: np.ndarray, side: float, accuracy: float):
    """LAMMPS with these molecules and energies. Pairs of a molecule are special, not excluded, so that the sum over waves knows of them."""
    places = 10 * np.asarray(bm.points_of(x, R, MODEL.shape.points)).reshape(-1, 3)
    first = 3 * np.arange(len(x)) + 1
    sections = {
        "Atoms # full": (f"{i + 1} {i // 3 + 1} {1 + (i % 3 > 0)} {MODEL.charges[i % 3]} {x} {y} {z}" for i, (x, y, z) in enumerate(places)),
        "Bonds": (f"{2 * k + j} 1 {a} {a + j}" for k, a in enumerate(first) for j in (1, 2)),
        "Angles": (f"{k + 1} 1 {a + 1} {a} {a + 2}" for k, a in enumerate(first)),
    }
    settings = [
        "units real",
        "atom_style full",
        "atom_modify map array",
        "bond_style zero",
        "angle_style zero",
        f"pair_style lj/cut/coul/long {10 * CUTOFF}",
        "pair_modify table 0",
        "READ",
        f"pair_coeff 1 1 {MODEL.epsilon / KCAL} {10 * MODEL.sigma}",
        "pair_coeff * 2 0.0 1.0",
        "bond_coeff 1",
        "angle_coeff 1",
        "special_bonds lj/coul 0.0 0.0 0.0",
        f"kspace_style ewald {accuracy}",
        "neighbor 1.0 bin",
    ]
    one = engine()
    one.commands_list(with_data(settings, sections, len(places), (15.9994, 1.008), 10 * side))
    return one


class Averages(NamedTuple):
    """Of one run: U per molecule in kJ/mol and g_OO, (bins,)."""

    energy: float
    g: np.ndarray


def averages(q, *, accuracy: float, step: float, time: float, settle: float, seed: int) -> Averages:
    """By BAOAB, whose places are right to far below these errors at 4 fs; `step` and times in ps, from the places q on."""
    molecules = len(q[0])
    system = here(molecules, side_of(molecules), accuracy, 0.01)
    bath = bm.Langevin(system, temperature=KT, rate=RATE)
    every = max(1, round(0.02 / step))
    observe = {
        "g": bm.radial_distribution(_oxygens, cutoff=CUTOFF, bins=BINS, every=every),
        "U": bm.time_average(bm.potential_energy, every=every),
    }
    settings = {"steps": round((time + settle) / step), "burn_in": round(settle / step), "trajectories": 1, "progress": False}
    result = bm.simulate(bath, bath.start(q, temperature=KT), step=step, seed=seed, observe=observe, **settings)
    return Averages(float(result.U.mean) / molecules, np.asarray(result.g.g)[0])


def _oxygens(state):
    return bm.points_of(state.q[0], state.q[1], MODEL.shape.points)[:, 0]


def averages_in_lammps(q, *, accuracy: float, step: float, time: float, settle: float, seed: int) -> Averages:
    """By fix rigid/small with its Langevin bath."""
    every, (x, R) = max(1, round(0.02 / step)), q
    one, side = lammps_water(x, R, side_of(len(x)), accuracy), 10 * side_of(len(x))
    commands = [
        "thermo_style custom pe",
        f"thermo {every}",
        f"timestep {1000 * step}",
        f"velocity all create {298.15} {seed}",
        f"fix rigid all rigid/small molecule langevin 298.15 298.15 {1000 / RATE} {seed}",
        f"run {round(settle / step)} post no",
    ]
    one.commands_list(commands)
    energies, counts = [], np.zeros(BINS)
    samples = round(time / step / every)
    for _ in range(samples):
        one.command(f"run {every} pre no post no")
        energies.append(KCAL * one.get_thermo("pe") / len(x))
        oxygens = np.array(one.gather_atoms("x", 1, 3)).reshape(-1, 3)[::3]
        apart = (oxygens[:, None] - oxygens)[np.triu_indices(len(x), 1)]
        apart -= side * np.round(apart / side)
        counts += np.histogram(np.linalg.norm(apart, axis=1), BINS, (0, 10 * CUTOFF))[0]
    one.close()
    edges = np.linspace(0, 10 * CUTOFF, BINS + 1)
    ideal = samples * len(x) * (len(x) - 1) / 2 * 4 / 3 * np.pi * np.diff(edges**3) / side**3
    return Averages(float(np.mean(energies)), counts / ideal)


def settled(molecules: int, runs: int, time: float, seed: int):
    """Places of as many runs, with a reaction field, which is cheap."""
    from bismut.gallery.water import water

    bath = bm.Langevin(water(molecules), temperature=KT, rate=RATE)
    steps = round(time / 0.002)
    start = bath.start(on_a_lattice(molecules, side_of(molecules)), temperature=KT)
    result = bm.simulate(bath, start, step=0.002, steps=steps, every=steps, trajectories=runs, seed=seed, progress=False)
    return jax.tree.map(np.asarray, result.final.q)


def write(ours: list[Averages], theirs: list[Averages], file: Path) -> None:
    """U first, as a row whose r is empty, then g_OO at the middles of the bins; means and standard errors of runs."""
    cells = lambda one, two, digits: [f"{value:.{digits}f}" for value in (*one, *two)]

    def of(runs, name):
        values = [getattr(run, name) for run in runs]
        return np.mean(values, 0), np.std(values, 0, ddof=1) / len(runs) ** 0.5

    with file.open("w", newline="", encoding="utf-8") as opened:
        table = csv.writer(opened, lineterminator="\n")
        table.writerow(["quantity", "r", "bismut", "bismut, error", "LAMMPS", "LAMMPS, error"])
        table.writerow(["energy", "", *cells(of(ours, "energy"), of(theirs, "energy"), 3)])
        r = CUTOFF * (np.arange(BINS) + 0.5) / BINS
        for k, (one, two) in enumerate(zip(np.stack(of(ours, "g"), -1), np.stack(of(theirs, "g"), -1), strict=True)):
            table.writerow(["g", f"{r[k]:.3f}", *cells(one, two, 4)])


def draw(file: Path, picture: Path) -> None:
    """Both g_OO over each other, and their difference with its error below."""
    from bismut.figures.style import colour, styled

    with file.open(encoding="utf-8", newline="") as opened:
        r, ours, error, theirs, other = np.array([list(map(float, row[1:])) for row in csv.reader(opened) if row[0] == "g"]).T
    with styled() as plt:
        figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6.5), sharex=True, height_ratios=(3, 1))
        above.plot(r, ours, color=colour("blue"), label="bismut")
        above.plot(r, theirs, color=colour("vermilion"), linestyle="--", label="LAMMPS")
        above.set(ylabel="$g_{OO}$")
        above.legend()
        below.errorbar(r, ours - theirs, yerr=np.hypot(error, other), fmt=".", color=colour("blue"))
        below.axhline(0.0, color=colour("ink"), linewidth=1.0)
        below.set(xlabel="r, nm", ylabel="difference")
        figure.suptitle("216 SPC/E molecules with an Ewald sum, here and in LAMMPS")
        figure.savefig(picture, dpi=110)
        plt.close(figure)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--molecules", type=int, default=216)
    options.add_argument("--runs", type=int, default=4)
    options.add_argument("--time", type=float, default=20.0, help="ps of each run")
    options.add_argument("--settle", type=float, default=5.0, help="ps before each run, after 10 ps with a reaction field")
    options.add_argument("--accuracy", type=float, default=1e-3, help="of the Ewald sum here; LAMMPS has a hundredth of it")
    options.add_argument("--out", type=Path, default=DATA)
    asked = options.parse_args()
    places = settled(asked.molecules, asked.runs, 10.0, seed=1)
    lengths = {"time": asked.time, "settle": asked.settle}
    ours, theirs = [], []
    for k in range(asked.runs):
        q = tuple(part[k] for part in places)
        theirs.append(averages_in_lammps(q, accuracy=asked.accuracy / 100, step=0.001, seed=101 + k, **lengths))
        ours.append(averages(q, accuracy=asked.accuracy, step=0.004, seed=201 + k, **lengths))
        print(f"run {k + 1}: U {ours[-1].energy:.3f} here, {theirs[-1].energy:.3f} in LAMMPS", flush=True)
        if k:
            write(ours, theirs, asked.out)
            draw(asked.out, asked.out.with_suffix(".png"))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
