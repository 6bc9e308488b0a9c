"""Patchy disks: a two-dimensional gas of bodies that stick at spots.

    L = Σ ½ m |v_i|² + ½ I ω_i² − Σ_{i<j} [ ε (σ/r)¹² − b Σ_{ab} exp(−|y_ia − y_jb|²/2w²) ] − Σ ½ k |x_i|²        on (ℝ² × SO(2))^K

Disks with n sticky patches y_ia = x_i + R_i z_a on their rims, which bind patch to patch: a planar model of molecules and colloids that assemble into
chains (n = 2), sheets or glasses (Kern and Frenkel, J. Chem. Phys. 118, 9882 (2003), for the idea). A bath acts on translation and rotation; in
equilibrium both have the temperature kT. Without the bath the total angular momentum Σ (x × p + m) is kept, and in the absence of the trap the
momentum as well.
"""

import jax.numpy as jnp
import numpy as np

from bismut.drawing import Drawing, Part, about_third, in_space
from bismut.flows import Langevin
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.mechanics import Scheme, State, System, left_rotation, mechanical, pair_potential
from bismut.spaces import SO2, Euclidean


def patchy_disks(
    bodies: int = 4,
    patches: int = 3,
    mass: float = 1.0,
    inertia: float = 0.125,
    binding: float = 2.0,
    core: float = 1.0,
    trap: float = 0.1,
    width: float = 0.2,
    temperature: float = 0.3,
) -> System:
    """`bodies` disks of diameter 1 with `patches` sticky spots each; b = `binding`, ε = `core`, k = `trap`, w = `width`; kT = `temperature`."""
    angles = 2 * np.pi * np.arange(patches) / patches
    spots = 0.5 * np.stack([np.cos(angles), np.sin(angles)], -1)

    def meet(a, b, parameters):
        r = b.x - a.x
        first, second = (body.x + jnp.asarray(spots, r.dtype) @ body.R.T for body in (a, b))
        gaps = jnp.sum((first[:, None, :] - second[None, :, :]) ** 2, -1)
        return parameters["core"] * (r @ r) ** -6 - parameters["binding"] * jnp.sum(jnp.exp(-0.5 * gaps / parameters["width"] ** 2))

    def confine(x, R, parameters):
        return 0.5 * parameters["trap"] * jnp.sum(x * x)

    numbers = {"binding": binding, "core": core, "trap": trap, "width": width, "temperature": temperature}
    return mechanical(
        (Euclidean(2) * SO2()) ** bodies,
        mass=(mass, inertia),
        potential=pair_potential(meet) + confine,
        symmetries={"angular": left_rotation(1.0)},
        parameters=numbers,
    )


def on_a_grid(bodies: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Disks on a square grid, turned at random."""
    side = int(np.ceil(np.sqrt(bodies)))
    x = 1.3 * np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), -1).reshape(-1, 2)[:bodies]
    angle = np.random.default_rng(seed).uniform(-np.pi, np.pi, bodies)
    turn = np.stack([np.stack([np.cos(angle), -np.sin(angle)], -1), np.stack([np.sin(angle), np.cos(angle)], -1)], -2)
    return x - x.mean(0), turn


def _bath(system: System) -> Scheme:
    return Langevin(system, temperature=lambda parameters: parameters["temperature"], rate=1.0)


def _angular_momentum(trial: Trial) -> float:
    """The change of the angular momentum in 50 steps of the same disks without a bath."""
    from bismut.actions import Verlet
    from bismut.ensembles import trajectory

    scheme = Verlet(trial.system)
    run = trajectory(scheme, State(trial.state.q, trial.state.p), step=trial.step, steps=50, every=50)
    J = lambda state: trial.system.momentum_map("angular", state)
    return float(J(run.final) - J(trial.state))


def picture(system: System, q) -> Drawing:
    """Disks of diameter 1, each with a spot towards its first patch."""
    x, R = np.asarray(q[0]), np.asarray(q[1])
    parts = [Part("rod", (0.48, 0.48, 0.1)), Part("ball", 0.1, at=(0.4, 0.0, 0.1), colour="ink")]
    return Drawing(in_space(x), about_third(np.arctan2(R[..., 1, 0], R[..., 0, 0])), parts, flat=True)


ENTRY = Entry(
    "patchy-disks",
    __doc__,
    patchy_disks,
    start=lambda scheme: scheme.start(on_a_grid(scheme.system.space.dim // 3), temperature=float(scheme.system.parameters["temperature"])),
    scheme=_bath,
    step=0.01,
    facts=(Fact("without the bath the angular momentum is kept", _angular_momentum, 0.0, 1e-11),),
    kept=(),  # a bath keeps no momentum
    picture=picture,
)
