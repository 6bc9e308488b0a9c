"""A system that cannot be is refused before anything runs, with what was expected, what was given and what to do."""

import math
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError, DegenerateError, DomainError, ShapeError
from bismut.mechanics.validation import check_space


def bath(friction):
    return bm.Langevin(bm.mechanical(bm.Euclidean(2)), 1.0, friction=friction)


FREE = staticmethod(lambda q, v: 0.5 * v @ v)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: bm.System(bm.Euclidean(2), lambda q, v: 0.5 * (v[0] + v[1]) ** 2), DegenerateError, "degenerate"),
        (lambda: bm.System(bm.Euclidean(2), lambda q, v: q @ v), DegenerateError, "degenerate"),
        (lambda: bm.System(bm.Euclidean(2), lambda q, v: 0.5 * v * v), ShapeError, "must return one number"),
        (lambda: bm.System(bm.Euclidean(2), lambda q, v: v @ jnp.ones(3)), ShapeError, "lagrangian fails"),
        (lambda: bm.System(bm.Euclidean(2), lambda q: q @ q), ShapeError, r"function of \(q, v\)"),
        (lambda: bm.System(bm.Euclidean(2), FREE, noise=lambda q: q[0]), ShapeError, "one value γ_i"),
        (lambda: bm.System(bm.Euclidean(2), FREE, noise=lambda q: jnp.outer(q, q)), ShapeError, "one value γ_i"),
        (lambda: bm.System(bm.Euclidean(2), FREE, force=lambda q, v: v[0]), ShapeError, "force must return"),
        (lambda: bm.System(bm.Circle(), lambda q, v: 0.5 * v**2, symmetries={"turn": bm.left_rotation(1.0)}), DomainError, "does not act on Circle"),
        (lambda: check_space(bm.Sphere(2)), ShapeError, r"got Sphere\..*space=domain\.space and constraint=domain\.constraint"),
        (lambda: check_space(bm.mechanical(bm.Circle())), ShapeError, r"got System\.$"),
        (lambda: check_space(bm.Simplex(3)), ShapeError, r"space=domain\.space, on which domain\.point\(q\)"),
        (lambda: bm.left_rotation((0.0, 0.0, 0.0)), DomainError, "three finite numbers, not all zero"),
        (lambda: bm.left_rotation((0.0, 1.0)), DomainError, r"in the plane a number such as 1.0; got \(0.0, 1.0\)"),
        (lambda: bm.left_rotation(float("nan")), DomainError, "three finite numbers"),
        (lambda: bm.right_rotation((1.0, float("inf"), 0.0)), DomainError, "three finite numbers"),
        (
            lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q: q),
            ShapeError,
            r"potential must return one number, .* shape \(2,\)",
        ),
        (lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q: q @ jnp.ones(3)), ShapeError, "potential fails"),
        (lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q, parameters: parameters["k"] * q @ q), ShapeError, "the system has none"),
        (
            lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q, parameters: parameters["k"] * q @ q, parameters={"kk": 1.0}),
            ShapeError,
            "it looks up 'k', which is not there",
        ),
        (lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q: q @ q + 1j), DomainError, "potential must return a real number, .* complex"),
        (lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q: q[0] > 0), DomainError, "potential must return a real number, .* truth"),
        (lambda: bm.mechanical(bm.Euclidean(2), mass="heavy"), DomainError, "mass must be numbers, got 'heavy'"),
        (lambda: bm.Verlet(bm.mechanical(bm.Euclidean(2))).start(np.zeros(2), velocity="fast"), DomainError, "start.velocity must be numbers"),
        (lambda: bm.Brownian(bm.mechanical(bm.Euclidean(2)), 1.0, mobility="free"), DomainError, "mobility must be numbers"),
        (lambda: bm.rigid_bodies(mass="heavy", inertia=np.ones((1, 3)), potential=None), DomainError, "mass must be numbers"),
        (lambda: bm.body("cloud"), DomainError, "points must be numbers"),
        (lambda: bm.Langevin(bm.mechanical(bm.Euclidean(2)), "300 K", friction=1.0), DomainError, r"kT\('300 K'\)"),
        (
            lambda: bm.Langevin(bm.mechanical(bm.Euclidean(2)), 1.0, 1.0, bm.GLA(bm.Verlet(bm.mechanical(bm.Euclidean(2))))),
            BismutError,
            "got the scheme Verlet",
        ),
        (lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q: np.cos(q[0])), ShapeError, "potential fails .* jnp.cos instead of np.cos"),
        (lambda: bm.System(bm.Euclidean(2), lambda q, v: v @ v - np.sum(np.array(q))), ShapeError, "lagrangian fails .* Use jax.numpy"),
        (lambda: bm.mechanical(bm.Euclidean(2), noise=lambda q: np.array([q[0]])), ShapeError, "noise fails .* jnp.array instead of np.array"),
        (lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q: math.cos(q[0])), ShapeError, "jnp.cos instead of math.cos"),
        (lambda: bm.mechanical(bm.Euclidean(2), potential=lambda q: q[0] if q[0] > 0 else 0.0), ShapeError, r"jnp.where\(condition, a, b\)"),
        (lambda: bm.mechanical(bm.Euclidean(2), mass=lambda q: q), ShapeError, r"mass\(q\) must return the matrix \(2, 2\)"),
        (lambda: bm.mechanical(bm.Euclidean(2), mass=lambda q: np.diag(np.exp(q))), ShapeError, r"mass\(q\) fails .* jnp"),
        (lambda: bath(lambda q: -jnp.eye(2)), DomainError, r"eigenvalue -1.*cholesky\(2 kT Γ\(q\)\)"),
        (lambda: bath(lambda q: np.cos(q)[:, None]), ShapeError, "factors .* jnp.cos"),
        (lambda: bath([[1.0, 2.0], [0.0, 1.0]]), DomainError, "must be symmetric"),
        (lambda: bath(-1.0), DomainError, "positive or zero"),
        (lambda: bm.mechanical(bm.Euclidean(2), mass=-1.0), DomainError, "mass must be positive"),
        (lambda: bm.mechanical(bm.Euclidean(2), mass=[[1.0, 2.0], [2.0, 1.0]]), DomainError, "positive definite"),
        (lambda: bm.mechanical(bm.Euclidean(2), mass=[1.0, 2.0, 3.0]), ShapeError, "mass has shape"),
        (lambda: bm.rigid_bodies(mass=[1.0], inertia=[[1.0, 1.0, 5.0]]), DomainError, "I₁ \\+ I₂ ≥ I₃"),
        (lambda: bm.rigid_bodies(mass=[1.0, 1.0], inertia=[[1.0, 1.0, 1.0]]), ShapeError, "inertia"),
        (lambda: bm.VariationalEuler(bm.mechanical(bm.SO3()), retraction="caley"), DomainError, "Did you mean 'cayley'"),
        (lambda: bm.VariationalEuler(bm.mechanical(bm.SO3()), end="middle"), DomainError, '"left" or "right"'),
        (lambda: bm.Verlet(bm.mechanical(bm.Circle())).start(temperature=1.0), ShapeError, "start needs a point q of Circle"),
        (lambda: bm.Verlet(bm.mechanical(bm.Euclidean(2))).start(np.zeros((0, 2)), velocity=np.zeros(2)), ShapeError, "none was given"),
        (lambda: bm.Discrete(bm.Euclidean(1), lambda a, b, h, dW: a - b), ShapeError, "S_d must return one number"),
        (lambda: bm.Discrete(bm.Euclidean(1), lambda a, b: jnp.sum(a - b)), ShapeError, r"S_d must be a function of \(q0, q1, h, dW\)"),
    ],
)
def test_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()


def test_unknown_momentum_map_offers_the_nearest():
    top = bm.mechanical(bm.SO3(), symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))})
    with pytest.raises(BismutError, match="Did you mean 'vertical'"):
        top.momentum_map("vertikal", bm.State(jnp.eye(3), jnp.ones(3)))


def python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"JAX_ENABLE_X64": "0", "PATH": ""}, check=False)


def test_single_precision_is_never_silent():
    """With x64 off the first call raises and gives the line to add; float32 on request works and stays float32."""
    run = python("import bismut as bm; bm.mechanical(bm.Euclidean(1))")
    assert run.returncode != 0
    assert 'jax.config.update("jax_enable_x64", True)' in run.stderr
    assert 'precision="float32"' in run.stderr
    asked = """
import bismut as bm, jax.numpy as jnp
scheme = bm.VariationalEuler(bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5], potential=lambda R: R[2, 2], noise=lambda R: R[2], precision="float32"))
start = scheme.start(jnp.eye(3), velocity=jnp.ones(3))
result = bm.simulate(scheme, start, step=0.01, steps=5, trajectories=2)
print(result.final.p.dtype, result.outcome.ok)
"""
    run = python(asked)
    assert run.stdout.split() == ["float32", "True"], run.stderr
