"""OpenMM: points with a pair energy of one's own, liquids, molecules.

U = Σ_{i<j} exp(−r)/r + r⁻¹²
"""

import numpy as np

from benchmarks.timing import Ready, coil, fcc, spc_water, timed, triangle

KT = 1.0 / 0.00831446261815324  # a temperature with kT = 1 in kJ/mol


def points(count: int) -> Ready:
    """CustomNonbondedForce over all pairs with LangevinMiddle, on the faster of the platforms that have no need of a GPU."""
    import openmm as mm

    ways = {name: _running(mm, count, name) for name in ("CPU", "Reference")}
    speeds = {name: max(way.round() for _ in range(3)) for name, way in ways.items()}
    fastest = max(speeds, key=lambda name: speeds[name])
    return Ready(ways[fastest].round, {"platform": fastest, "speeds": speeds})


def _running(mm, count: int, platform: str) -> Ready:
    system, force = mm.System(), mm.CustomNonbondedForce("exp(-r)/r + r^(-12)")
    for _ in range(count):
        system.addParticle(1.0)
        force.addParticle([])
    system.addForce(force)
    # Units of OpenMM: kJ/mol, nm, ps, dalton.
    integrator = mm.LangevinMiddleIntegrator(KT, 1.0, 0.005)
    properties = {"Threads": "1"} if platform == "CPU" else {}
    context = mm.Context(system, integrator, mm.Platform.getPlatformByName(platform), properties)
    side = int(np.ceil(count ** (1 / 3)))
    context.setPositions(1.5 * np.stack(np.unravel_index(np.arange(count), (side,) * 3), -1).astype(float))
    context.setVelocitiesToTemperature(KT)
    steps = 2000

    def work() -> float:
        context.getIntegrator().step(steps)
        return float(count) * steps

    work()
    return Ready(timed(work), {})


def fluid(count: int, threads: int = 1) -> Ready:
    """The Lennard-Jones liquid, cut at 2.5, on the processor's platform, which computes in mixed precision."""
    import openmm as mm

    places, side = fcc(count)
    system, force = mm.System(), mm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*(side * np.eye(3)))
    force.setNonbondedMethod(mm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(2.5)
    force.setUseDispersionCorrection(False)
    for _ in range(count):
        system.addParticle(1.0)
        force.addParticle(0.0, 1.0, 1.0)
    system.addForce(force)
    return _stepping(mm, system, places, 0.1, max(20, 400_000 // count), "CPU", threads)


def molecules(kind: str, count: int, copies: int) -> Ready:
    """Molecules with fixed distances, of three points or chains, out of reach of each other; on the faster platform."""
    import openmm as mm

    shape = triangle() if kind == "trimer" else coil(count)
    joined = [(0, 1), (0, 2), (1, 2)] if kind == "trimer" else [(i, i + 1) for i in range(count - 1)]
    system = mm.System()
    for _ in range(copies * count):
        system.addParticle(1.0)
    for k in range(copies):
        for i, j in joined:
            system.addConstraint(k * count + i, k * count + j, float(np.linalg.norm(shape[i] - shape[j])))
    places = np.concatenate([shape + np.array([0.0, 5.0 * k, 0.0]) for k in range(copies)])
    ways = {name: _stepping(mm, system, places, 1.0, max(20, 200_000 // (copies * count)), name, 1) for name in ("CPU", "Reference")}
    speeds = {name: max(way.round() for _ in range(3)) for name, way in ways.items()}
    fastest = max(speeds, key=lambda name: speeds[name])
    return Ready(ways[fastest].round, {"platform": fastest, "speeds": speeds})


def water(molecules: int) -> Ready:
    """SPC/E with its reaction field, kept rigid by SETTLE, at 2 fs, on the processor's platform."""
    import openmm as mm

    places, side = spc_water(molecules)
    system, force = mm.System(), mm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*(side * np.eye(3)))
    force.setNonbondedMethod(mm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(0.9)
    force.setUseDispersionCorrection(False)
    apart = [np.linalg.norm(places[i] - places[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    for k in range(molecules):
        for mass, charge, sigma, epsilon in ((15.9994, -0.8476, 0.316557, 0.650194), (1.008, 0.4238, 1.0, 0.0), (1.008, 0.4238, 1.0, 0.0)):
            system.addParticle(mass)
            force.addParticle(charge, sigma, epsilon)
        for (i, j), distance in zip(((0, 1), (0, 2), (1, 2)), apart, strict=True):
            system.addConstraint(3 * k + i, 3 * k + j, distance)
            force.addException(3 * k + i, 3 * k + j, 0.0, 1.0, 0.0)
    system.addForce(force)
    return _stepping(mm, system, places, 5.0, 400, "CPU", 1, step=0.002, kelvin=298.15, bodies=molecules)


def _stepping(
    mm, system, places: np.ndarray, friction: float, steps: int, platform: str, threads: int, step=0.005, kelvin=KT, bodies: int | None = None
) -> Ready:
    integrator = mm.LangevinMiddleIntegrator(kelvin, friction, step)
    integrator.setConstraintTolerance(1e-8)
    properties = {"Threads": str(threads)} if platform == "CPU" else {}
    context = mm.Context(system, integrator, mm.Platform.getPlatformByName(platform), properties)
    context.setPositions(places)
    context.setVelocitiesToTemperature(kelvin)

    def work() -> float:
        context.getIntegrator().step(steps)
        return float(bodies or len(places)) * steps

    work()
    return Ready(timed(work), {})


CONTESTANTS = {"OpenMM": points, "OpenMM fluid": fluid, "OpenMM molecules": molecules, "OpenMM water": water}
