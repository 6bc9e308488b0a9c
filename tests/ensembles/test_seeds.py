"""A seed is a number like any other: one program serves all of them, and a traced one is the same path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError


def swing() -> bm.System:
    return bm.mechanical(
        bm.Circle(), potential=lambda q, parameters: parameters["k"] * jnp.cos(q), noise=lambda q: jnp.sin(q)[None], parameters={"k": 1.0}
    )


def end(k, seed):
    """A mean, from drawn momenta."""
    scheme = bm.Verlet(swing().with_parameters({"k": k}))
    return bm.average(lambda state: state.p**2, scheme, scheme.start(0.4, temperature=0.5), step=0.05, steps=4, trajectories=3, seed=seed)


def test_one_program_serves_all_seeds():
    """Under jit the seed is an argument: its value and derivative are those of the same seed given as a number, and none is compiled again."""
    traced, slopes = jax.jit(jax.value_and_grad(end)), []
    for seed in (0, 7, 2**40 + 3):
        value, slope = traced(1.0, seed)
        np.testing.assert_allclose(value, end(1.0, seed), rtol=1e-12)
        slopes.append(float(slope))
    assert traced._cache_size() == 1
    assert len(set(slopes)) == 3


def test_a_traced_seed_drives_a_trajectory():
    scheme = bm.Verlet(swing())
    start, run = scheme.start(0.4, velocity=0.1), {"step": 0.05, "steps": 4}
    many = jax.vmap(lambda seed: bm.trajectory(scheme, start, **run, seed=seed).q[-1])(jnp.arange(2))
    np.testing.assert_allclose(many, [bm.trajectory(scheme, start, **run, seed=seed).q[-1] for seed in (0, 1)], rtol=1e-12)


def test_arrays_are_seeds():
    for seed in (np.int64(5), np.asarray(5), jnp.asarray(5), jnp.asarray(5, jnp.uint32)):
        assert bm.Wiener(seed).seed_number == 5
    for wrong in (-1, jnp.asarray(-1), 1.5, jnp.asarray(1.5), jnp.arange(2), True, 2**64):
        with pytest.raises(DomainError, match="seed must be"):
            bm.Wiener(wrong)


def test_a_run_is_not_traced():
    scheme = bm.Verlet(swing())
    with pytest.raises(bm.errors.BismutError, match="cannot run inside"):
        jax.jit(lambda seed: bm.simulate(scheme, scheme.start(0.4, velocity=0.1), step=0.1, steps=1, seed=seed).final.q)(3)
