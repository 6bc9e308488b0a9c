"""Systems that hide nothing: nonlinear, asymmetric, non-separable where possible, with noise that is not a constant.

Linear problems super-converge and symmetric targets hide sign errors, so none of these is either.
"""

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.programs.evaluation import evaluate


def plane() -> bm.System:
    """ℝ², non-separable: a mass that depends on position and is not diagonal, a magnetic term, two noises that do not commute with anything."""

    def lagrangian(q, v):
        kinetic = 0.5 * (1 + q[0] ** 2) * v[0] ** 2 + 0.5 * v[1] ** 2 + 0.3 * v[0] * v[1] * jnp.cos(q[1])
        return kinetic + q[0] * v[1] - jnp.cos(q[0] + 2 * q[1])

    return bm.System(bm.Euclidean(2), lagrangian, lambda q: jnp.array([jnp.sin(q[0] * q[1]), q[0] + 0.2 * q[1] ** 2]))


def separable() -> bm.System:
    """ℝ³ with three masses and a potential that couples them: explicit."""
    potential = lambda q: jnp.cos(q[0] - 2 * q[1]) + 0.1 * jnp.sum(q**4) + q[0] * q[2]
    return bm.mechanical(bm.Euclidean(3), mass=[1.0, 2.0, 0.5], potential=potential, noise=lambda q: jnp.array([jnp.sin(q[0] * q[1]), q[2] ** 2]))


def heavy_top() -> bm.System:
    """SO(3), symmetric about the vertical, noise too."""
    return bm.mechanical(
        bm.SO3(),
        mass=[1.0, 2.0, 2.5],
        potential=lambda R: 3.0 * R[2, 2] + 0.4 * R[2, 0],
        noise=lambda R: jnp.array([0.5 * R[2, 2], 0.3 * R[2, 1] ** 2]),
        symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))},
    )


def nine_noises() -> bm.System:
    """SO(3) with the nine orientation potentials s_j R_ij and no symmetry at all."""
    s = jnp.array([0.5, 0.3, 0.4])
    return bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5], potential=lambda R: R[2, 2] + 0.5 * R[0, 1] * R[1, 0], noise=lambda R: jnp.ravel(R * s))


def vehicle() -> bm.System:
    """SE(3) with a full 6 × 6 mass that couples turning and shifting, and noise on both."""
    mass = np.diag([1.0, 2.0, 3.0, 1.5, 1.2, 2.4])
    mass[0, 4] = mass[4, 0] = 0.3
    return bm.mechanical(
        bm.SE3(),
        mass=mass,
        potential=lambda g: jnp.sin(g[1][0]) * g[0][2, 1] + 0.3 * g[1] @ g[1],
        noise=lambda g: jnp.array([0.4 * g[1][2] * g[0][0, 1], 0.5 * g[0][1, 2], 0.3 * g[1][0]]),
    )


def bodies(count: int = 2) -> bm.System:
    """Different rigid bodies with a potential and noises that depend only on relative configuration: total momenta are kept."""
    mass = np.linspace(1.0, 2.0, count)
    inertia = np.array([[1.0, 2.0, 2.5]]) * np.linspace(1.0, 1.5, count)[:, None]

    def pairs(x, R):
        d = x[:, None] - x[None, :]
        far = jnp.sum(d**2, -1) + jnp.eye(count)
        axis = R[:, :, 2]
        return d, far, axis

    def potential(x, R):
        d, far, axis = pairs(x, R)
        aligned = axis @ axis.T
        along = jnp.einsum("ijk,ik->ij", d, R[:, :, 0])
        return jnp.sum((1 - jnp.eye(count)) * (jnp.sqrt(far) + 0.5 * aligned / far + 0.2 * along**2 / far))

    def noise(x, R):
        d, far, axis = pairs(x, R)
        return jnp.array([0.3 * jnp.sqrt(far[0, 1]), 0.4 * axis[0] @ R[1, :, 0], 0.2 * d[0, 1] @ axis[1]])

    return bm.rigid_bodies(
        mass=mass,
        inertia=inertia,
        potential=potential,
        noise=noise,
        symmetries={"momentum": bm.translations(), "angular": bm.left_rotations()},
    )


ALL = {"plane": plane, "separable": separable, "heavy_top": heavy_top, "nine_noises": nine_noises, "vehicle": vehicle, "bodies": bodies}


def random_state(system: bm.System, seed: int = 0, size: float = 1.0) -> bm.State:
    """A state with no special place or direction."""
    space = system.space
    momentum = lambda: space.unflatten(size * jax.random.normal(jax.random.key(seed + 1), (space.dim,)))
    return bm.State(*evaluate(lambda: (space.random(jax.random.key(seed)), momentum())))
