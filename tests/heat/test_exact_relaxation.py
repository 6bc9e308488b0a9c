"""The bath at fixed q is exact:  E = exp(−h Γ M⁻¹)  and noise of covariance  kT (M − E M Eᵀ), for every kind of friction.

The relaxation is affine in the momentum and in the normals, so both matrices are read off by differentiation and compared with SciPy's exponential.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import bismut as bm
from bismut.mechanics import small_linalg
from bismut.mechanics.constraint import jacobian
from bismut.mechanics.friction import FactoredFriction, ModalFriction, NoFriction, UniformFriction, friction_of, relaxation
from bismut.programs.evaluation import evaluate, evaluator
from tests.constraints.systems import sphere
from tests.systems import bodies, heavy_top, plane, separable, vehicle

H, KT = 0.37, 0.8
MATRIX = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, -0.2], [0.0, -0.2, 0.7]])
SINGULAR = np.outer([1.0, -1.0, 0.5], [1.0, -1.0, 0.5])
FULL = np.cov(np.random.default_rng(0).normal(size=(12, 40)))


def turning(R):
    return jnp.stack([R[2] + 0.3, R[0] * R[1, 1]], 1)


CASES = {
    "number": (separable, {"friction": 0.7}, ModalFriction),
    "per coordinate": (separable, {"friction": [0.7, 0.0, 2.0]}, ModalFriction),
    "matrix": (separable, {"friction": MATRIX}, ModalFriction),
    "singular matrix": (separable, {"friction": SINGULAR}, ModalFriction),
    "rate": (separable, {"rate": 0.9}, ModalFriction),
    "own noise": (separable, {}, FactoredFriction),
    "per axis": (heavy_top, {"friction": [0.7, 0.0, 2.0]}, ModalFriction),
    "matrix on a group": (heavy_top, {"friction": MATRIX}, ModalFriction),
    "function on a group": (heavy_top, {"friction": turning}, FactoredFriction),
    "coupled mass": (vehicle, {"friction": [0.7, 0.1, 2.0, 0.0, 1.0, 0.4]}, ModalFriction),
    "per body": (bodies, {"friction": (np.array([[0.5], [1.5]]), np.array([[0.3], [0.9]]))}, ModalFriction),
    "matrix per body": (bodies, {"friction": (0.4, np.stack([MATRIX, SINGULAR]))}, ModalFriction),
    "whole matrix": (bodies, {"friction": FULL}, ModalFriction),
    "mass depends on q": (plane, {"friction": [[1.0, 0.4], [0.4, 0.9]]}, FactoredFriction),
    "mass depends on q, rate": (plane, {"rate": 0.9}, UniformFriction),
    "constrained, number": (sphere, {"friction": [0.7, 0.2, 1.0]}, FactoredFriction),
    "constrained, rate": (sphere, {"rate": 0.9}, UniformFriction),
    "constrained, own noise": (sphere, {}, FactoredFriction),
}


LONG = ("coupled mass", "per body", "whole matrix", "constrained, number")  # to compile: tried by `make measure`


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in CASES])
def test_relaxation_is_exact(name):
    make, given, kind = CASES[name]
    system = make()
    law = friction_of(system, given.get("friction"), given.get("rate"))
    assert isinstance(law, kind)
    space = system.space
    q = evaluate(lambda x: space.move(space.origin(), space.unflatten(x)), np.linspace(0.2, 0.9, space.dim))
    if system.constraints:
        q = jnp.array([0.6, 0.0, 0.8])

    def measured(q, p, z):
        relax = lambda p, z: space.flatten(law.relax(system, q, space.unflatten(p), H, 0.0, KT, z))
        return *jax.jacfwd(relax, (0, 1))(p, z), whole_friction_of(system, law, q), system.mass(q)

    E, spread, drag, M = map(np.asarray, evaluate(measured, q, np.linspace(-1.0, 1.0, space.dim), np.zeros(law.rank)))
    assert np.allclose(drag, drag.T, atol=1e-12)
    P = np.eye(system.space.dim)
    if system.constraints:  # covectors along the surface
        G = np.asarray(evaluate(lambda: jacobian(system, q, 0.0)))
        P = P - G.T @ np.linalg.solve(G @ np.linalg.solve(M, G.T), G @ np.linalg.inv(M))
    drag = P @ drag @ P.T
    exact = expm(-H * drag @ np.linalg.inv(M)) @ P
    assert np.allclose(E @ P, exact, atol=1e-12)
    assert np.allclose(spread @ spread.T, KT * (P @ M @ P.T - exact @ M @ exact.T), atol=1e-12)


def whole_friction_of(system, law, q):
    return jax.vmap(lambda v: law.drag(system, q, v, 0.0, KT), out_axes=1)(jnp.eye(system.space.dim))


def test_own_noise_is_the_formula_of_the_paper():
    """Γ = (1/2kT) Σ dγ_i ⊗ dγ_i, and thermalize applies −Γ v."""
    system = separable()
    q, v = jnp.array([0.3, -0.4, 0.8]), jnp.array([1.0, -0.5, 0.2])
    slopes = np.asarray(evaluate(jax.jacfwd(system.noise), q))
    expected = -(slopes.T @ slopes) @ np.asarray(v) / (2 * KT)
    assert np.allclose(bm.thermalize(system, KT).force(q, v), expected, atol=1e-14)


def test_no_friction_is_no_bath():
    """Then OBABO is the trapezoid action."""
    still = separable().without_noise()
    assert isinstance(friction_of(still, 0.0, None), NoFriction)
    scheme = bm.Langevin(still, temperature=1.0, friction=0.0, splitting=bm.OBABO)
    assert scheme.channels == 0
    assert bm.Langevin(separable(), temperature=1.0, friction=0.0).channels == 2
    verlet = bm.Verlet(still)
    start = verlet.start(jnp.array([0.1, 0.2, -0.3]), velocity=jnp.array([1.0, 0.0, -1.0]))
    a, b = (bm.trajectory(s, start, step=0.05, steps=100, seed=3) for s in (scheme, verlet))
    assert np.allclose(a.q, b.q, atol=1e-12)
    assert np.allclose(a.p, b.p, atol=1e-12)


@pytest.mark.parametrize("n", [1, 3, 8, pytest.param(2, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)])
def test_functions_of_a_symmetric_matrix(n):
    """Values against SciPy, derivatives against differences, with equal eigenvalues among them."""
    rng = np.random.default_rng(n)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.array([0.0, 0.4, 0.4, 0.4 + 1e-9, 3.0, 20.0, 5.0, 0.01])[:n]
    A, B = (Q * values) @ Q.T, rng.normal(size=(n, n))
    B = B + B.T
    plain = lambda A: small_linalg.functions((relaxation,), A)[0]
    of = evaluator(plain)
    assert np.allclose(of(A), (Q * np.asarray(evaluate(relaxation, values))) @ Q.T, atol=1e-14)
    slope = evaluate(lambda A, B: jax.jvp(plain, (A,), (B,))[1], A, B)
    step = 1e-4
    difference = (np.asarray(of(A + step * B)) - np.asarray(of(A - step * B))) / (2 * step)
    assert np.allclose(slope, difference, atol=1e-7)
    C = np.asarray(evaluate(small_linalg.cholesky, A + np.eye(n)))
    assert np.allclose(C @ C.T, A + np.eye(n), atol=1e-13)
