"""The sphere by a constraint and the sphere in angles are one system: pathwise, at order 1."""

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.findings.convergence_study import coarsened, copies, final_states
from bismut.programs.evaluation import evaluate
from tests.constraints.systems import sphere

TIME, FINEST = 0.8, 2048


def in_angles() -> bm.System:
    """The same Lagrangian and noise in polar angle and azimuth."""
    place = lambda a: jnp.array([jnp.sin(a[0]) * jnp.cos(a[1]), jnp.sin(a[0]) * jnp.sin(a[1]), jnp.cos(a[0])])
    same = sphere()

    def lagrangian(a, v):
        return 0.65 * (v[0] ** 2 + (jnp.sin(a[0]) * v[1]) ** 2) - same.potential(place(a))

    return bm.System(bm.Euclidean(2), lagrangian, lambda a: same.noise(place(a)))


def test_pathwise_agreement_at_order_one():
    """Root mean square distance at T of the constrained scheme with N steps to the intrinsic one with 2048, 32 paths: the slope is 1 ± 0.15."""
    fine = np.sqrt(TIME / FINEST) * np.random.default_rng(5).normal(size=(32, FINEST, 2))
    intrinsic, constrained = bm.VariationalEuler(in_angles()), bm.VariationalEuler(sphere())
    angles, rates = np.array([1.1, 0.3]), np.array([0.7, -0.9])
    place = lambda a: jnp.array([jnp.sin(a[0]) * jnp.cos(a[1]), jnp.sin(a[0]) * jnp.sin(a[1]), jnp.cos(a[0])])
    q, v = evaluate(lambda a, r: jax.jvp(place, (a,), (r,)), angles, rates)

    def final(scheme, start, n):
        return np.asarray(final_states(scheme, copies(start, len(fine)), TIME / n, coarsened(fine, n), n, 0.0).q)

    exact = np.asarray(evaluate(jax.vmap(place), final(intrinsic, intrinsic.start(angles, velocity=rates), FINEST)))
    errors, levels = [], (32, 64, 128)
    for n in levels:
        errors.append(np.sqrt(np.mean(np.sum((final(constrained, constrained.start(q, velocity=v), n) - exact) ** 2, 1))))
    slope = -np.polyfit(np.log(levels), np.log(errors), 1)[0]
    assert abs(slope - 1) < 0.15, (slope, errors)
