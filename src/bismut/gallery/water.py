"""Rigid water: SPC/E or TIP4P molecules in a periodic box, in a bath at 298.15 K.

    U = Σ_{i<j} S(r_ij) { 4ε [(σ/r_OO)¹² − (σ/r_OO)⁶] + C Σ_{ab} q_a q_b u(r_ab) },      u = 1/r + k r² − w, a reaction field, or an Ewald sum

The molecules that simulations use most, as rigid bodies on (ℝ³ × SO(3))^K, in nm, daltons, kJ/mol and so picoseconds (`bismut.units.molecular`).
Three sites are SPC/E, r_OH = 0.1 nm with the tetrahedral angle and charges −0.8476, 0.4238; four are TIP4P, whose negative charge −1.04 lies 0.015 nm
from the oxygen. The density is that of the liquid at 1 bar, 0.997 g/cm³. Each molecule has the three temperatures of its axes beside that of its
motion, and at a large step they are not the same. The default has 27 molecules, so that every check can afford it; studies take 216 or 512.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from bismut.drawing import Drawing, Line, Part
from bismut.errors import DomainError
from bismut.flows import Langevin
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.mechanics import Body, Maxwell, Scheme, State, System, body, rigid_bodies
from bismut.mechanics.bodies import Ewald, ReactionField, lattice, sites

COULOMB = 138.93545764  # 1/4πε₀ in kJ mol⁻¹ nm e⁻²
KT = 0.00831446261815324 * 298.15  # kJ/mol
_DENSITY = 0.997 / 18.01528 * 602.214076  # molecules per nm³
_DEBYE = 48.03204713  # e nm
_MASSES = (15.9994, 1.008, 1.008)


class WaterModel(NamedTuple):
    """Geometry and energies of a molecule: places of its sites in nm, charges in e, σ in nm and ε in kJ/mol of the oxygen."""

    shape: Body
    charges: tuple[float, ...]
    epsilon: float
    sigma: float
    names: tuple[str, ...]


def water_model(sites: int) -> WaterModel:
    """SPC/E (Berendsen, Grigera & Straatsma 1987) with 3 sites, TIP4P (Jorgensen et al. 1983) with 4."""
    if sites not in (3, 4):
        raise DomainError(f"sites must be 3 (SPC/E) or 4 (TIP4P), got {sites!r}.")
    bond, angle = (0.1, np.arccos(-1 / 3)) if sites == 3 else (0.09572, np.deg2rad(104.52))
    s, c = bond * np.sin(angle / 2), bond * np.cos(angle / 2)
    atoms = [[0.0, 0.0, 0.0], [s, 0.0, c], [-s, 0.0, c]]
    if sites == 3:
        return WaterModel(body(atoms, _MASSES), (-0.8476, 0.4238, 0.4238), 0.650194, 0.316557, ("O", "H", "H"))
    return WaterModel(body([*atoms, [0.0, 0.0, 0.015]], (*_MASSES, 0.0)), (0.0, 0.52, 0.52, -1.04), 0.648520, 0.315365, ("O", "H", "H", "M"))


def water(
    molecules: int = 27, sites: int = 3, density: float = _DENSITY, cutoff: float = 0.9, dielectric: float = 78.3, accuracy: float = 0.0
) -> System:
    """`molecules` with 3 `sites` (SPC/E) or 4 (TIP4P), so many per nm³ (`density`), with a cutoff of at most half a side; beyond it a reaction field
    of the `dielectric` constant, or, with an `accuracy` such as 1e-5, an Ewald sum surrounded by a conductor.
    """
    model, count = water_model(sites), int(molecules)
    side = (count / density) ** (1 / 3)
    return rigid_bodies(
        mass=np.full(count, model.shape.mass),
        inertia=np.tile(model.shape.moments, (count, 1)),
        potential=_energy(model, min(cutoff, 0.4999 * side), Ewald(accuracy) if accuracy else ReactionField(dielectric)),
        box=side,
    )


def _energy(model: WaterModel, cutoff: float, electrostatics: Any):
    first = np.eye(len(model.charges))[0]
    return sites(
        model.shape.points,
        charges=model.charges,
        epsilon=model.epsilon * first,
        sigma=np.where(first, model.sigma, 0.0),
        constant=COULOMB,
        electrostatics=electrostatics,
        cutoff=cutoff,
        names=model.names,
    )


def on_a_lattice(molecules: int, side: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Centres on a cubic lattice, with random orientations."""
    quaternions = np.random.default_rng(seed).normal(size=(molecules, 4))  # of any length: a direction in four dimensions is a rotation
    return lattice("sc", box=side, count=molecules), np.asarray(scipy.spatial.transform.Rotation.from_quat(quaternions).as_matrix())


def _start(scheme: Scheme) -> State | Maxwell:
    from bismut.mechanics import inventory

    known = inventory(scheme.system)
    assert known is not None
    assert known.box is not None
    return scheme.start(on_a_lattice(known.bodies, known.box.lengths[0]), temperature=KT)


def _bath(system: System) -> Scheme:
    return Langevin(system, temperature=KT, rate=5.0)


def _dipole(count: int):
    def moment(trial: Trial) -> float:
        model = water_model(count)
        return float(np.linalg.norm(np.asarray(model.charges) @ model.shape.points)) * _DEBYE

    return moment


def picture(system: System, q) -> Drawing:
    """Atoms and bonds, of the molecules that the system has; the charge of TIP4P beside the oxygen is no atom."""
    from bismut.mechanics import inventory

    x, R = map(np.asarray, q)
    known = inventory(system)
    assert known is not None
    assert known.box is not None
    (molecule,) = known.molecules
    oxygen, *hydrogens = molecule.points[:3]
    parts = [Part("ball", 0.06, at=oxygen, colour="ochre"), *(Part("ball", 0.035, at=one, colour="ink") for one in hydrogens)]
    bodies = np.arange(x.shape[1])
    lines = [Line(bodies, bodies, oxygen, one) for one in hydrogens]
    return Drawing(x, R, parts, lines, box=known.box.lengths)


ENTRY = Entry(
    "water",
    __doc__,
    water,
    start=_start,
    scheme=_bath,
    step=0.002,
    facts=(
        Fact("the dipole moment of SPC/E is 2·0.4238 e·0.1 nm/√3 = 2.3505 D", _dipole(3), 2 * 0.4238 * 0.1 / np.sqrt(3) * _DEBYE, 1e-10),
        Fact("the dipole moment of TIP4P is 2.177 D", _dipole(4), 2.177, 1e-3),
    ),
    kept=(),
    picture=picture,
)
