"""Constrained systems without special directions: a sphere, a ball joint, a rigid triatomic, a chain."""

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.flows import flow
from bismut.programs.evaluation import evaluate


def sphere(noise: float = 1.0) -> bm.System:
    """A mass on a sphere, with potential and noise symmetric about the vertical."""
    return bm.mechanical(
        bm.Euclidean(3),
        mass=1.3,
        potential=lambda q: 2.0 * q[2] + 0.4 * (q[0] ** 2 + q[1] ** 2) * q[2],
        noise=lambda q: noise * jnp.array([0.5 * q[2], 0.3 * q[2] ** 2]),
        constraint=lambda q: jnp.array([q @ q - 1.0]),
        symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))},
    )


def ball_joint() -> bm.System:
    """A body on SE(3) that turns about a point fixed in it and in space: three constraints, noise on turning and shifting."""
    arm = jnp.array([0.1, 0.2, -1.0])
    return bm.mechanical(
        bm.SE3(),
        mass=np.diag([1.0, 2.0, 2.5, 1.2, 1.2, 1.2]),
        potential=lambda g: 3.0 * g[1][2] + 0.2 * g[0][0, 1],
        noise=lambda g: jnp.array([0.4 * g[0][2, 2], 0.3 * g[1][0]]),
        constraint=lambda g: g[1] + g[0] @ arm,
    )


LENGTHS = np.array([[0, 1, 1.0], [1, 2, 1.2], [0, 2, 1.5]])


def triatomic() -> bm.System:
    """Three unequal atoms at fixed distances, in an anharmonic field, noise on one of them."""
    i, j, length = LENGTHS[:, 0].astype(int), LENGTHS[:, 1].astype(int), jnp.asarray(LENGTHS[:, 2])
    return bm.mechanical(
        bm.Euclidean(3) ** 3,
        mass=np.array([[1.0], [2.0], [3.5]]),
        potential=lambda x: jnp.sum(jnp.cos(x[:, 0] + 2 * x[:, 1])) + 0.1 * jnp.sum(x**4),
        noise=lambda x: jnp.array([jnp.sin(x[0, 0] * x[1, 2]), 0.3 * x[2, 1]]),
        constraint=lambda x: jnp.sum((x[i] - x[j]) ** 2, -1) - length**2,
    )


def chain(links: int) -> bm.System:
    """A pendulum of many links."""

    def constraint(x):
        bonds = jnp.diff(jnp.concatenate([jnp.zeros((1, 3)), x]), axis=0)
        return jnp.sum(bonds**2, 1) - 1.0

    return bm.mechanical(
        bm.Euclidean(3) ** links,
        mass=np.linspace(1.0, 2.0, links)[:, None],
        potential=lambda x: jnp.sum(x[:, 2]),
        noise=lambda x: jnp.array([0.3 * jnp.sin(x[-1, 0]), 0.2 * x[0, 1]]),
        constraint=constraint,
        symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))},
    )


def start_of(scheme: bm.Action, seed: int = 0) -> bm.State:
    """A start near a feasible point, brought onto the constraints."""
    space = scheme.system.space
    rng = np.random.default_rng(seed)
    velocity = evaluate(space.unflatten, rng.normal(size=space.dim))
    if space == bm.Euclidean(3):
        point = jnp.array([0.6, 0.1, 0.8])
    elif space == bm.SE3():
        point = space.origin()
    elif space == bm.Euclidean(3) ** 3 and scheme.system.constraints == 3 and not scheme.system.symmetries:
        point = jnp.array([[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [1.0, 1.2, 0.1]])
    else:
        point = np.cumsum(np.array([0.6, 0.0, -0.8]) + 0.1 * rng.normal(size=(space.dim // 3, 3)), axis=0)
    return scheme.start(point, velocity=velocity, project=True)


def walked(scheme: bm.Action, start: bm.State, h: float, steps: int) -> tuple[bm.State, bool]:
    """The states of a noisy path, and whether every step was solved. Evaluated in NumPy: a step with multipliers takes longest to compile."""
    dW = np.sqrt(h) * np.random.default_rng(2).normal(size=(steps, scheme.channels))

    def step(state, w):
        new, solve = flow(scheme).advance(state, h, w, 0.0)
        return new, (new, solve.converged)

    states, converged = evaluate(lambda state: jax.lax.scan(step, state, jnp.asarray(dW))[1], start)
    return states, bool(np.all(converged))


ALL = {"sphere": sphere, "ball joint": ball_joint, "triatomic": triatomic, "chain": lambda: chain(3)}
