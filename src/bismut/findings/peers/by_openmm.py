"""OpenMM: LangevinMiddleIntegrator on its Reference platform. Particles do not see each other, so each is an independent copy.

Its velocities belong to the middle of a step, half a step before its positions.
"""

from __future__ import annotations

import numpy as np

from bismut.findings import peers

_COPIES, _LOOKS = 3000, 60
_R = 0.00831446261815324  # kJ/mol/K


def well() -> peers.Judged:
    import openmm  # pyright: ignore[reportMissingImports]

    system = openmm.System()
    force = openmm.CustomExternalForce("0.5*(x^2 + y^2 + z^2) + 0.25*(x^4 + y^4 + z^4)")
    for i in range(_COPIES):
        system.addParticle(1.0)
        force.addParticle(i, [])
    system.addForce(force)
    integrator = openmm.LangevinMiddleIntegrator(peers.KT / _R, peers.FRICTION, peers.WELL_STEP)
    integrator.setRandomNumberSeed(1)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(np.zeros((_COPIES, 3)))
    context.setVelocitiesToTemperature(peers.KT / _R, 1)
    looks, apart = [], round(1 / peers.WELL_STEP)
    integrator.step(8 * apart)
    for _ in range(_LOOKS):
        integrator.step(apart)
        speeds = context.getState(getVelocities=True).getVelocities(asNumpy=True)
        looks.append(np.asarray(speeds / speeds.unit) ** 2 / peers.KT)
    return peers.Judged(f"OpenMM {openmm.version.version}, LangevinMiddle", peers.WELL_AXES, peers.WELL_STEP, np.stack(looks))
