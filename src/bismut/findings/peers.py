"""Other programs, judged by the same statistics on the same problems.

    rigid bodies   (ℝ³ × SO(3)), moments 1, 2, 3, in a trap, turning freely, kT = 1, friction 1, h = 0.02
    a well         U = ½ x² + ¼ x⁴ for each of three coordinates, kT = 1, friction 1, h = 0.1

Each adapter runs its program and returns p_i v_i/kT, looks × independent copies × axes; the judgement is the same for all. Bodies and particles do
not interact, so each is an independent copy. None of these programs is needed by bismut; one that is not installed is listed as missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles import complete_run, request
from bismut.findings.equilibrium import temperatures
from bismut.findings.report import Report
from bismut.findings.statistics import ALARM, close_to, holm_verdicts, mean_of
from bismut.flows import Langevin
from bismut.mechanics import State, mechanical
from bismut.spaces import SO3, Euclidean

KT, FRICTION = 1.0, 1.0
INERTIA = (1.0, 2.0, 3.0)
BODY_STEP, WELL_STEP = 0.02, 0.1
BODY_AXES = ["translation 1", "translation 2", "translation 3", "rotation 1", "rotation 2", "rotation 3"]
WELL_AXES = ["coordinate 1", "coordinate 2", "coordinate 3"]
_BURN, _LOOKS = 8, 60  # looks are a relaxation time apart


class PeerSample(NamedTuple):
    """The program, the axes, the step, and p_i v_i/kT (looks, copies, axes)."""

    subject: str
    names: list[str]
    step: float
    axes: np.ndarray


def judge_peers(tolerance: float = 0.02, only: tuple[str, ...] | None = None) -> tuple[dict[str, Report], dict[str, str]]:
    """A report for each program that is installed, and the reason for each that is not judged."""
    reports, missing = {}, {}
    for name, (needed, run) in _PEERS.items():
        if only is not None and name not in only:
            continue
        try:
            importlib.import_module(needed)
        except ImportError as problem:
            missing[name] = f"not installed ({problem})"
            continue
        sample = run()
        findings = temperatures(sample.axes, sample.names, tolerance)
        for kind in ("translation", "rotation"):
            if places := [i for i, axis in enumerate(sample.names) if axis.startswith(kind)]:
                mean = mean_of(sample.axes[..., places].mean(-1))
                findings.insert(1, close_to(f"temperature, {kind}", mean, 1.0, tolerance, "⟨p v⟩/kT, mean over its axes"))
        verdicts = tuple(replace(finding, group="equilibrium") for finding in holm_verdicts(findings))
        reports[name] = Report(sample.subject, sample.step, verdicts, ALARM)
    return reports, missing


def _bismut_bodies() -> PeerSample:
    system = mechanical(Euclidean(3) * SO3(), mass=(1.0, list(INERTIA)), potential=lambda q: 0.5 * q[0] @ q[0])
    return _bismut(Langevin(system, KT, rate=FRICTION), (jnp.zeros(3), jnp.eye(3)), BODY_AXES, BODY_STEP)


def _bismut_well() -> PeerSample:
    system = mechanical(Euclidean(3), potential=lambda q: 0.5 * q @ q + 0.25 * jnp.sum(q**4))
    return _bismut(Langevin(system, KT, FRICTION), jnp.zeros(3), WELL_AXES, WELL_STEP)


def _bismut(scheme: Langevin, q: Any, names: list[str], step: float) -> PeerSample:
    """`Langevin` with BAOAB, 4000 copies."""
    system, every = scheme.system, round(1 / step)

    @jax.jit
    @jax.vmap
    def axes(state: State):
        flat = system.space.flatten
        return flat(state.p) * flat(system.velocity(state.q, state.p, 0.0)) / KT

    start = scheme.start(q, temperature=KT)
    result = complete_run(request(scheme, start, step=step, trajectories=4000, seed=1, steps=every, every=every))
    looks = []
    for _ in range(_BURN + _LOOKS):
        result = complete_run(request(scheme, continue_from=result, steps=every, every=every))
        assert result.final is not None
        looks.append(np.asarray(axes(State(result.final.q, result.final.p))))
    return PeerSample("bismut, " + scheme.title, names, step, np.stack(looks[_BURN:]))


def _jax_md_bodies() -> PeerSample:
    """`simulate.nvt_langevin` of jax-md, 4000 copies."""
    from jax_md import rigid_body, simulate, space  # pyright: ignore[reportMissingImports]

    copies, (_, shift) = 4000, space.free()
    energy = lambda body, **_: 0.5 * jnp.sum(body.center**2)
    friction = rigid_body.RigidBody(FRICTION, FRICTION)
    init, step = simulate.nvt_langevin(energy, shift, BODY_STEP, KT, gamma=friction, center_velocity=False)
    orientation = rigid_body.Quaternion(jnp.tile(jnp.array([1.0, 0.0, 0.0, 0.0]), (copies, 1)))
    inertia = jnp.tile(jnp.array(INERTIA), (copies, 1))
    mass = rigid_body.RigidBody(jnp.ones(copies), inertia)
    state = init(jax.random.key(1), rigid_body.RigidBody(jnp.zeros((copies, 3)), orientation), mass=mass)
    advance = jax.jit(lambda state: jax.lax.fori_loop(0, round(1 / BODY_STEP), lambda _, s: step(s), state))

    @jax.jit
    def axes(state):
        turning = jax.vmap(rigid_body.conjugate_momentum_to_angular_momentum)(state.position.orientation, state.momentum.orientation)
        return jnp.concatenate([state.momentum.center**2, turning**2 / inertia], 1) / KT

    looks = []
    for _ in range(_BURN + _LOOKS):
        state = advance(state)
        looks.append(np.asarray(axes(state)))
    return PeerSample(f"jax-md {version('jax-md')}, nvt_langevin", BODY_AXES, BODY_STEP, np.stack(looks[_BURN:]))


def _diffrax_well() -> PeerSample:
    """ShARK of diffrax on underdamped Langevin dynamics, one solve for each of 2000 copies."""
    import diffrax  # pyright: ignore[reportMissingImports]

    end = float(_BURN + _LOOKS)
    drift = diffrax.UnderdampedLangevinDriftTerm(FRICTION, KT, lambda x, _: (x + x**3) / KT)

    def one(key):
        noise = diffrax.VirtualBrownianTree(0.0, end, WELL_STEP / 4, (3,), key, levy_area=diffrax.SpaceTimeTimeLevyArea)
        terms = diffrax.MultiTerm(drift, diffrax.UnderdampedLangevinDiffusionTerm(FRICTION, KT, noise))
        start = (jnp.zeros(3), jax.random.normal(jax.random.fold_in(key, 1), (3,)))
        looks = diffrax.SaveAt(ts=jnp.arange(_BURN + 1.0, end + 0.5))
        solution = diffrax.diffeqsolve(terms, diffrax.ShARK(), 0.0, end, WELL_STEP, start, saveat=looks, max_steps=None)
        assert solution.ys is not None
        return solution.ys[1]

    speeds = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), 2000))
    axes = np.moveaxis(np.asarray(speeds), 0, 1) ** 2 / KT
    return PeerSample(f"diffrax {version('diffrax')}, ShARK", WELL_AXES, WELL_STEP, axes)


def _openmm_well() -> PeerSample:
    """LangevinMiddleIntegrator of OpenMM on its Reference platform, 3000 copies. Its velocities are those half a step before its positions."""
    import openmm  # pyright: ignore[reportMissingImports]

    copies, temperature = 3000, KT / 0.00831446261815324  # kJ/mol/K
    system = openmm.System()
    force = openmm.CustomExternalForce("0.5*(x^2 + y^2 + z^2) + 0.25*(x^4 + y^4 + z^4)")
    for i in range(copies):
        system.addParticle(1.0)
        force.addParticle(i, [])
    system.addForce(force)
    integrator = openmm.LangevinMiddleIntegrator(temperature, FRICTION, WELL_STEP)
    integrator.setRandomNumberSeed(1)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(np.zeros((copies, 3)))
    context.setVelocitiesToTemperature(temperature, 1)
    looks = []
    for _ in range(_BURN + _LOOKS):
        integrator.step(round(1 / WELL_STEP))
        speeds = context.getState(getVelocities=True).getVelocities(asNumpy=True)
        looks.append(np.asarray(speeds / speeds.unit) ** 2 / KT)
    return PeerSample(f"OpenMM {openmm.version.version}, LangevinMiddle", WELL_AXES, WELL_STEP, np.stack(looks[_BURN:]))


# What must be installed for an adapter, and the adapter.
_PEERS: dict[str, tuple[str, Callable[[], PeerSample]]] = {
    "bismut, rigid bodies": ("bismut", _bismut_bodies),
    "jax-md, rigid bodies": ("jax_md", _jax_md_bodies),
    "bismut, well": ("bismut", _bismut_well),
    "diffrax, well": ("diffrax", _diffrax_well),
    "OpenMM, well": ("openmm", _openmm_well),
}
