"""Points with a pair energy of one's own by OpenMM.

U = Σ_{i<j} exp(−r)/r + r⁻¹²
"""

import numpy as np

from benchmarks.timing import Ready, timed


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
    # Units of OpenMM: kJ/mol, nm, ps, dalton; a temperature with kT = 1.
    integrator = mm.LangevinMiddleIntegrator(1.0 / 0.00831446261815324, 1.0, 0.005)
    properties = {"Threads": "1"} if platform == "CPU" else {}
    context = mm.Context(system, integrator, mm.Platform.getPlatformByName(platform), properties)
    side = int(np.ceil(count ** (1 / 3)))
    context.setPositions(1.5 * np.stack(np.unravel_index(np.arange(count), (side,) * 3), -1).astype(float))
    context.setVelocitiesToTemperature(1.0 / 0.00831446261815324)
    steps = 2000

    def work() -> float:
        context.getIntegrator().step(steps)
        return float(count) * steps

    work()
    return Ready(timed(work), {})


CONTESTANTS = {"OpenMM": points}
