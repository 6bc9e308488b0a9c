"""A function run by lanes gives what it gives under vmap, whatever it is made of: known primitives, unknown ones, loops, branches, constants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import erf

from bismut.ensembles.lanes import Program, join, split

COUNT = 5
MATRIX = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.0], [0.5, -1.0, 3.0]])  # zeros and ones, which lanes fold away


def loop(x):
    """Newton's method for a cube root: each trajectory takes its own number of turns."""
    target = 1 + x[0] ** 2
    unfinished = lambda c: (jnp.abs(c[0] ** 3 - target) > 1e-12 * target) & (c[1] < 50)
    return jax.lax.while_loop(unfinished, lambda c: (c[0] - (c[0] ** 3 - target) / (3 * c[0] ** 2), c[1] + 1), (2 + target, 0))


FUNCTIONS = {
    "matrices": lambda x: (MATRIX @ x) @ jnp.outer(x, x[::-1]) + jnp.trace(MATRIX * x[0]),
    "batched products": lambda x: jnp.einsum("kij,kj->ki", jnp.stack([MATRIX * x, MATRIX.T]), jnp.stack([x, 2 * x])),
    "powers and quotients": lambda x: x**3 / (1 + x**2) + x**-2 + 2.5**x + jnp.sqrt(1 + x * x),
    "elementary": lambda x: jnp.arctan2(jnp.sin(x), jnp.cosh(x)) + jnp.log1p(x * x) * jnp.expm1(-x) + jnp.tanh(x) * jnp.cbrt(x),
    "steps": lambda x: jnp.where(x > 0, jnp.floor(3 * x), jnp.sign(x)) + jnp.round(x, 1) + jnp.clip(x, -0.5, 0.5) + x % 0.3,
    "norms and reductions": lambda x: jnp.linalg.norm(x) + jnp.max(x) * jnp.prod(x) - jnp.min(jnp.abs(x)) + jnp.any(x > 1),
    "pieces": lambda x: jnp.concatenate([x[1:], x[:1] * 0, jnp.pad(x, (1, 2))[::2], jnp.roll(x, 1)]).reshape(3, -1).T,
    "constants": lambda x: jnp.eye(3) * jnp.arange(3.0) + jnp.zeros(3) * x + np.pi,
    "whole numbers": lambda x: (jnp.floor(10 * x).astype(int) // 3) * (jnp.arange(3) % 2) + (jnp.floor(x).astype(int) >> 1) ** 2,
    "complex": lambda x: jnp.real(jnp.exp(1j * x)) + jnp.abs(x + 2j) + jnp.imag(jnp.conj(1j * x)),
    "single precision": lambda x: (x.astype(jnp.float32) * 3 + 1) / 7,
    "sorted": lambda x: jnp.sort(x) + jnp.cumsum(x)[::-1] + erf(x),
    "picked": lambda x: x[jnp.argmax(x)] + x[jnp.array([2, 0, 0])] + jnp.zeros(3).at[1].add(x[2]),
    "branches": lambda x: jax.lax.cond(x[0] > 0, lambda y: y * 2, lambda y: y - 1, x) + jax.lax.switch(1, [jnp.sin, jnp.cos], x),
    "scan": lambda x: jax.lax.scan(lambda c, y: (c * 0.5 + y, c), jnp.zeros(()), x),
    "sums of nothing": lambda x: jnp.sum(x[:0]) + jnp.prod(x[3:]) * x + jnp.any(x[:0] > 0) + jnp.zeros((3, 0)) @ x[:0],
    "loop": loop,
    "gradient": jax.grad(lambda x: jnp.linalg.det(jnp.outer(x, x) + MATRIX) + jnp.linalg.norm(x) ** 3),
    "hessian": jax.hessian(lambda x: jnp.cos(x[0] * x[1]) * x[2] ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lanes_are_vmap(name):
    """To a few units in the last place: sums and products may be contracted differently."""
    function = FUNCTIONS[name]
    x = np.random.default_rng(3).normal(size=(COUNT, 3))
    program = Program(function, jnp.zeros(3))
    by_lanes = jax.jit(lambda x: join(program(COUNT, split(x)), COUNT))(jnp.asarray(x))
    by_vmap = jax.jit(jax.vmap(function))(jnp.asarray(x))
    assert jax.tree.structure(by_lanes) == jax.tree.structure(by_vmap)
    for a, b in zip(jax.tree.leaves(by_lanes), jax.tree.leaves(by_vmap), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def test_what_is_not_known_is_noted():
    """Sorting is left to vmap, products are not."""
    known, unknown = (Program(FUNCTIONS[name], jnp.zeros(3)) for name in ("matrices", "sorted"))
    x = jnp.ones((COUNT, 3))
    for program in (known, unknown):
        jax.eval_shape(lambda x, p=program: join(p(COUNT, split(x)), COUNT), x)
    assert not known.fallbacks
    assert "sort" in unknown.fallbacks


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_trajectory_that_is_not_a_number_leaves_the_others_alone(bad):
    function = FUNCTIONS["loop"]
    x = np.random.default_rng(3).normal(size=(COUNT, 3))
    spoiled = x.copy()
    spoiled[2] = bad
    run = jax.jit(lambda x: join(Program(function, jnp.zeros(3))(COUNT, split(x)), COUNT))
    whole, rest = run(jnp.asarray(x)), run(jnp.asarray(spoiled))
    others = [0, 1, 3, 4]
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(rest), strict=True):
        np.testing.assert_array_equal(a[np.array(others)], b[np.array(others)])
