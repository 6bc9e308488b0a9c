"""Small systems, one for each part of the machinery, whose bits are published: hashes.json holds them, for both arithmetics.

    build(name) ↦ scheme, start, settings of `simulate`        digests(result) ↦ SHA-256 of the final states, and of every statistic

    python -m tests.machines.catalogue            compares with hashes.json
    python -m tests.machines.catalogue --write    writes it: for a change that is meant to change bits

Starts and parameters are numbers that are written here, so nothing but the program decides the bits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.gallery import entry

HASHES = Path(__file__).with_name("hashes.json")
ARITHMETICS = "fused", "plain"
_CASES: dict[str, Callable[[], Case]] = {}


class Case(NamedTuple):
    """A scheme, where it starts, and the other arguments of `simulate`."""

    scheme: Any
    start: Any
    settings: dict[str, Any]


def case(build: Callable[[], Case]) -> Callable[[], Case]:
    _CASES[build.__name__.replace("_", "-")] = build
    return build


def build(name: str) -> Case:
    return _CASES[name]()


def names() -> list[str]:
    return list(_CASES)


def run(name: str, arithmetic: str, **changed: Any) -> bm.Result:
    """The case in machine code; `changed` are settings of `simulate` that must not change bits, such as block or executor."""
    scheme, start, settings = build(name)
    return bm.simulate(scheme, start, arithmetic=arithmetic, mode="native", progress=False, **settings | changed)


def digests(result: bm.Result) -> dict[str, Any]:
    """What is published of a run: SHA-256 of the final states, and of every array of every report."""
    assert not result.outcome.failures, result.outcome
    reports = {name: {part: digest([array]) for part, array in arrays_of(report).items()} for name, report in result.observables.items()}
    return {"states": digest(jax.tree.leaves(result.final)), "statistics": reports}


def arrays_of(report: Any) -> dict[str, np.ndarray]:
    return {str(name): np.asarray(values) for name, values in report.dataset().data_vars.items()}


def digest(arrays: list) -> str:
    """Of type, shape and bytes (least significant first), one array after another; NaN is one number, whatever its bits."""
    text = hashlib.sha256()
    for values in map(np.asarray, arrays):
        one_nan = np.where(np.isnan(values), values.dtype.type(np.nan), values) if values.dtype.kind == "f" else values
        array = np.ascontiguousarray(one_nan).astype(values.dtype.newbyteorder("<"))
        text.update(f"{array.dtype.str} {array.shape}\n".encode() + array.tobytes())
    return text.hexdigest()


def published() -> Mapping[str, Any]:
    return json.loads(HASHES.read_text())


def few(**settings: Any) -> dict[str, Any]:
    return {"step": 0.02, "steps": 100, "trajectories": 24, "seed": 7, "every": 50, "observe": {"energy": bm.energy}} | settings


INERTIA = np.array([1.0, 2.0, 3.0])


@case
def heavy_top() -> Case:
    """An action and two noises on SO(3), by automatic differentiation and Newton's method; quantiles and a histogram."""
    top = bm.System(bm.SO3(), lambda R, w: 0.5 * w @ (INERTIA * w) - 3.0 * R[2, 2], lambda R: jnp.array([0.5 * R[2, 2], 0.3 * R[2, 2] ** 2]))
    scheme = bm.VariationalEuler(top)
    observe = {
        "energy": bm.energy,
        "spread": bm.quantiles(bm.energy, levels=(0.1, 0.5, 0.9)),
        "tilt": bm.histogram(lambda s: s.q[2, 2], bins=8, range=(-1, 1)),
    }
    return Case(scheme, scheme.start(np.eye(3), velocity=np.array([0.3, 0.2, 1.0])), few(observe=observe))


@case
def dipoles_in_a_box() -> Case:
    """Rigid bodies with a cutoff in a periodic box: lanes are bodies, near ones come from lists; g(r)."""
    count, side = 256, 9.6
    energy = (bm.dipoles((0.0, 0.0, 0.6), cutoff=1.9) + bm.soft_spheres(cutoff=1.9)).inside((side,) * 3)
    scheme = bm.Langevin(
        bm.rigid_bodies(mass=np.ones(count), inertia=np.tile([0.1, 0.15, 0.2], (count, 1)), potential=energy), temperature=1.0, friction=0.5
    )
    start = scheme.start((lattice(count, side), np.tile(np.eye(3), (count, 1, 1))), temperature=1.0)
    observe = {"energy": bm.energy, "near": bm.radial_distribution(cutoff=3.0, bins=20)}
    return Case(scheme, start, few(step=0.005, steps=40, every=20, trajectories=2, observe=observe))


@case
def points_in_a_box() -> Case:
    """A Lennard-Jones fluid of points with lists, by the leapfrog of Verlet's action."""
    count, side = 343, 8.4
    energy = bm.lennard_jones(cutoff=1.9).inside((side,) * 3)
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(3) ** count, potential=energy))
    velocity = np.random.default_rng(5).uniform(-1.7, 1.7, (count, 3))
    return Case(scheme, scheme.start(lattice(count, side), velocity=velocity), few(step=0.005, steps=40, every=20, trajectories=1, seed=0))


@case
def constraint_chain() -> Case:
    """A double pendulum on rigid links: multipliers from a banded system."""
    found = entry("pendulum-chain")
    scheme = bm.Verlet(found.build(links=2))
    reach = np.arange(1.0, 3.0)[:, None]
    return Case(scheme, scheme.start(reach * np.array([0.6, 0.0, -0.8]), velocity=reach * np.array([0.0, 0.3, 0.0])), few())


@case
def rigid_triatomic() -> Case:
    """Three atoms held by three bonds, which close a ring."""
    found = entry("rigid-triatomic")
    scheme = bm.Verlet(found.build())
    return Case(scheme, found.start(scheme), few())


@case
def lie_poisson() -> Case:
    """The reduced heavy top on so(3)* ⋉ ℝ³: coadjoint steps."""
    found = entry("heavy-top-reduced")
    scheme = bm.HamiltonianMidpoint(found.build())
    return Case(scheme, found.start(scheme), few(step=0.05))


@case
def metropolised() -> Case:
    """Accepted or not, a decision at every step: one different bit would be another trajectory."""
    potential = lambda q: jnp.sum((q**2 - 1) ** 2) + jnp.cos(q[0] - 2 * q[1])
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(2), potential=potential), temperature=0.5, friction=1.0, splitting=bm.Metropolised())
    observe = {"energy": bm.time_average(bm.energy), "memory": bm.autocorrelation(lambda s: s.q[0], lags=10)}
    return Case(scheme, scheme.start(np.array([0.5, -0.2]), temperature=0.5), few(step=0.4, every=5, observe=observe))


@case
def fractional_noise() -> Case:
    """Noise with a long memory, from a circulant root."""
    scheme = bm.Midpoint(entry("kubo-oscillator").build())
    return Case(scheme, scheme.start(np.array([1.0]), velocity=np.array([0.0])), few(path=bm.FractionalBrownian(3, hurst=0.7, steps=100), seed=None))


@case
def coloured_noise() -> Case:
    """An Ornstein–Uhlenbeck process on SO(3), found by bisection."""
    top = bm.mechanical(bm.SO3(), mass=INERTIA, potential=lambda R: 2.0 * R[2, 2], noise=lambda R: 0.4 * R[2])
    scheme = bm.Midpoint(top)
    start = scheme.start(np.eye(3), velocity=np.array([0.3, 0.2, 1.0]))
    return Case(scheme, start, few(path=bm.OrnsteinUhlenbeck(3, correlation_time=0.3), seed=None, steps=50, every=25))


@case
def single_precision() -> Case:
    """Bodies in float32, with a potential of transcendental functions."""
    potential = lambda R: jnp.exp(-R[2, 2]) + jnp.sin(3 * R[0, 1]) + jnp.log(2 + R[1, 0]) + jnp.arctan2(R[0, 0], 2 + R[1, 1])
    scheme = bm.Langevin(bm.mechanical(bm.SO3(), mass=INERTIA, potential=potential, precision="float32"), temperature=1.0, friction=0.7)
    return Case(scheme, scheme.start(np.eye(3, dtype=np.float32), temperature=1.0), few())


@case
def brownian() -> Case:
    """Overdamped motion on ℝ³ × SO(3) with a mobility for every axis; extremes."""
    system = bm.rigid_bodies(mass=np.ones(1), inertia=np.ones((1, 3)), potential=lambda x, R: 0.5 * jnp.sum(x**2) - jnp.tanh(x[0, 0]) * R[0, 2, 2])
    scheme = bm.Brownian(system, temperature=1.0, mobility=(1.0, np.array([0.5, 1.0, 2.0])))
    return Case(
        scheme, scheme.start((np.zeros((1, 3)), np.eye(3)[None])), few(observe={"energy": bm.energy, "axis": bm.extremes(lambda s: s.q[1][0, 2, 2])})
    )


@case
def bath_on_a_group() -> Case:
    """BAOAB on SO(3), a friction for each axis; Maxwell's momenta; time averages with errors."""
    molecule = bm.mechanical(bm.SO3(), mass=INERTIA, potential=lambda R: -2.0 * R[2, 2])
    scheme = bm.Langevin(molecule, temperature=1.0, friction=np.array([0.5, 1.0, 2.0]))
    observe = {"kT": bm.time_average(bm.temperature), "alignment": bm.time_average(lambda s: s.q[2, 2])}
    return Case(scheme, scheme.start(np.eye(3), temperature=1.0), few(step=0.1, burn_in=20, every=1, observe=observe))


@case
def ewald_sum() -> Case:
    """Charged sites on rigid bodies in a box, with waves beyond the cutoff."""
    side = 6.0
    dumbbell = bm.body([[0.3, 0.0, 0.0], [-0.3, 0.0, 0.0], [0.0, 0.2, 0.1]], masses=[1.0, 1.0, 1.0])
    energy = bm.sites(
        dumbbell.points, charges=[0.5, -0.5, 0.0], epsilon=[0.2, 0.2, 0.1], sigma=[1.0, 1.0, 0.8], cutoff=2.9, electrostatics=bm.Ewald(1e-3)
    ).inside((side,) * 3)
    count = 8
    scheme = bm.Langevin(
        bm.rigid_bodies(mass=np.full(count, 3.0), inertia=np.tile([0.1, 0.2, 0.25], (count, 1)), potential=energy), temperature=1.0, friction=0.5
    )
    start = scheme.start((lattice(count, side), np.tile(np.eye(3), (count, 1, 1))), temperature=1.0)
    return Case(scheme, start, few(step=0.005, steps=40, every=20, trajectories=3))


def lattice(count: int, side: float) -> np.ndarray:
    """Points of a cubic lattice, a little shaken."""
    per = int(np.ceil(count ** (1 / 3) - 1e-9))
    corners = np.stack(np.unravel_index(np.arange(count), (per,) * 3), -1)
    return side / per * (corners + np.random.default_rng(5).uniform(-0.05, 0.05, (count, 3)))


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write hashes.json")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    wrong = 0
    for name in asked.names or names():
        found = {kind: digests(run(name, kind)) for kind in ARITHMETICS}
        known = published()
        if asked.write:
            HASHES.write_text(json.dumps({**known, name: found}, indent=1) + "\n")
        wrong += found != known.get(name)
        print(f"{name}: {'as published' if found == known.get(name) else 'differs'}", flush=True)
    return wrong


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    raise SystemExit(main())
