"""Systems of every kind of bodies, asymmetric ones, with states of no particular shape."""

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.spaces import SE2, SE3, SO2, SO3, Euclidean

CLOUD = bm.body(np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.0], [0.0, 0.7, 0.3], [0.2, 0.1, 1.0]]), [1.0, 2.0, 3.0, 1.0])
BOX = bm.Box((4.0, 5.0, np.inf))
_RIGID = np.block([[CLOUD.inertia, np.zeros((3, 3))], [np.zeros((3, 3)), 2.5 * np.eye(3)]])

SYSTEMS = {
    "points": lambda: bm.mechanical(Euclidean(3) ** 2, mass=np.array([[1.0], [3.0]])),
    "a point in a plane": lambda: bm.mechanical(Euclidean(2), mass=2.0),
    "bodies": lambda: bm.rigid_bodies(
        mass=[1.0, 2.0, 1.0],
        inertia=np.stack([CLOUD.inertia, 2 * CLOUD.inertia, CLOUD.inertia]),  # principal axes are not those of the body
        potential=bm.soft_spheres(cutoff=2.0),
        box=BOX,
    ),
    "disks": lambda: bm.mechanical((Euclidean(2) * SO2()) ** 2, mass=(np.array([[1.0], [2.0]]), np.array([0.3, 0.4]))),
    "a top": lambda: bm.System(SO3(), lambda R, w: 0.5 * w @ CLOUD.inertia @ w - R[2, 2]),
    "a motion": lambda: bm.System(SE3(), lambda q, v: 0.5 * v @ _RIGID @ v),
    "a motion in the plane": lambda: bm.mechanical(SE2(), mass=np.array([0.7, 1.5, 1.5])),
}


def states(scheme, count: int, seed: int = 0) -> bm.State:
    """Random states along a first axis, far enough out to leave a box."""
    generator = np.random.default_rng(seed)

    def one(key):
        q = scheme.space.random(key)
        q = jax.tree.map(lambda leaf: 3 * leaf if leaf.shape[-1:] not in ((), (1,)) and not _turn(leaf) else leaf, q)
        velocity = jax.tree.map(lambda leaf: jnp.asarray(generator.normal(size=leaf.shape)), scheme.space.zero())
        return scheme.start(q, velocity=velocity)

    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[one(key) for key in jax.random.split(jax.random.key(seed), count)])


def _turn(leaf) -> bool:
    return leaf.ndim > 1 and leaf.shape[-1] == leaf.shape[-2] and bool(jnp.allclose(leaf @ jnp.swapaxes(leaf, -1, -2), jnp.eye(leaf.shape[-1])))


def trajectory(scheme, count: int = 3, seed: int = 0, **changed) -> bm.Trajectory:
    """A trajectory of random states, which no scheme made."""
    times = 0.25 * jnp.arange(count)
    made = bm.Trajectory(times, states(scheme, count, seed), None, 7, jnp.asarray(0.05), jnp.asarray(-1))
    return made._replace(**changed)
