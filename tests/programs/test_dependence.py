"""affine(f) is true only of affine functions, and depends(f) is false only of constant ones: what is not known counts as the worst."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bismut.programs.dependence import affine, depends
from bismut.programs.evaluation import evaluate

X = jnp.array([0.3, -1.2, 0.7])
M = jnp.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [0.0, 0.1, 2.0]])


@jax.custom_jvp
def _identity(x):
    return x


_identity.defjvp(lambda primals, tangents: (primals[0], 0.5 * tangents[0]))

AFFINE = {
    "product": lambda x: M @ x + 1.0,
    "half": lambda x: x / 2 - x[::-1] * X,
    "parts": lambda x: jnp.concatenate([x[1:], x[:1]]).reshape(3, 1) * jnp.ones(2),
    "gradient": jax.grad(lambda y: 0.5 * y @ M @ y + jnp.sum(y)),
    "power": lambda x: x**1,
    "chosen by constants": lambda x: jnp.where(X > 0, x, 2 * x),
    "placed": jnp.zeros(5).at[jnp.array([4, 0, 1])].add,
    "taken": lambda x: x[jnp.array([2, 2, 0])],
    "solved": lambda x: jax.scipy.linalg.solve_triangular(M, x, lower=True),
    "called": jax.jit(lambda y: 3 * y),
    "unused": lambda x: (x + jnp.sin(x), 2 * x)[1],
}

BENT = {
    "applied": lambda x: x.at[0].apply(jnp.sin),
    "fmod": lambda x: jnp.fmod(x, 1.0),
    "mod": lambda x: x % 1.0,
    "divisor": lambda x: 1 / x,
    "square": lambda x: x * x,
    "powers": lambda x: x**2,
    "length": lambda x: x @ x,
    "sine": jnp.sin,
    "absolute": jnp.abs,
    "clip": lambda x: jnp.clip(x, -1.0, 1.0),
    "largest": jnp.max,
    "sorted": jnp.sort,
    "sign": jnp.sign,
    "rounded": jnp.round,
    "whole": lambda x: x.astype(int).astype(float),
    "stopped": lambda x: x + jax.lax.stop_gradient(x),
    "chosen by itself": lambda x: jnp.where(x > 0, x, 2 * x),
    "place": lambda x: X[jnp.argmax(x)] * jnp.ones(3),
    "own derivative": _identity,
    "loop": lambda x: jax.lax.while_loop(lambda y: y[0] < 1, lambda y: y + 1, x),
    "next": lambda x: jnp.nextafter(x, 2.0),
}


@pytest.mark.parametrize("name", AFFINE)
def test_affine_functions_are_seen(name):
    """Seen, and affine indeed: f(a x + (1 − a) y) = a f(x) + (1 − a) f(y)."""
    f, y = AFFINE[name], jnp.array([2.0, 0.4, -0.9])
    assert affine(f, X)
    found, expected = evaluate(lambda x, y: (f(1.7 * x - 0.7 * y), 1.7 * f(x) - 0.7 * f(y)), X, y)
    assert np.allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", BENT)
def test_what_is_not_evidently_affine_is_not(name):
    assert not affine(BENT[name], X)


def test_every_elementwise_function_of_jax_is_judged_rightly():
    """Of all functions of one array in jax.numpy, those called affine are: measured at random points, and with the derivative that JAX has."""
    points = np.random.default_rng(0).normal(size=(2, 3))
    wrong, judged = [], []
    for name in sorted(vars(jnp)):
        f = getattr(jnp, name)
        if not isinstance(f, jnp.ufunc) and not hasattr(f, "__wrapped__"):
            continue
        try:
            if not affine(f, X):
                continue
            (a, b, middle), matrix = evaluate(lambda *at, f=f: (tuple(map(f, at)), jax.jacfwd(f)(at[0])), *points, points.T @ [0.3, 0.7])
            a, b, middle, matrix = map(np.asarray, (a, b, middle, matrix))
        except Exception:  # no function of one array of numbers
            continue
        judged.append(name)
        if np.issubdtype(a.dtype, np.inexact) and not (
            np.allclose(middle, 0.3 * a + 0.7 * b, atol=1e-14) and np.allclose(matrix @ (points[0] - points[1]), a - b, atol=1e-14)
        ):
            wrong.append(name)
    assert wrong == []
    assert len(judged) >= 20


def test_dependence_goes_through_calls_and_stops_at_what_is_not_used():
    assert depends(jax.jit(lambda a, b: a + b), X, X)
    assert not depends(lambda x, y: jax.jit(lambda a, b: (a, b))(x, y)[1], X, X)
    assert not depends(lambda x, y: (jnp.sin(x), y)[1], X, X)
    assert depends(lambda x, y: _identity(x) + y, X, X)
    assert depends(lambda x, y: jax.lax.cond(y[0] > 0, lambda: x, lambda: y), X, X)
    assert depends(lambda x, y: jax.lax.fori_loop(0, 2, lambda i, z: z + x, y), X, X)
    assert not depends(lambda x: 3.0, X)
