"""A trajectory fails at the same step alone and among others, however they are blocked and recorded; the rest do not notice."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm

RUN = {"step": 0.25, "steps": 40, "seed": 4}
N, EVERY = 8, 7


@functools.cache
def scheme() -> bm.Action:
    """U = q − q³/3 has a well at −1 and a barrier at 1: noise drives a particle over it, and far beyond an implicit step has no solution."""
    return bm.Midpoint(bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.sum(q**3) / 3 + q[0], noise=lambda q: 1.5 * q))


@functools.cache
def start() -> bm.State:
    return scheme().start(jnp.array([-1.0]), velocity=jnp.zeros(1))


@functools.cache
def whole(block: int = N, mode: str = "auto") -> bm.Result:
    return bm.simulate(scheme(), start(), trajectories=N, every=EVERY, block=block, mode=mode, **RUN)


def steps_of(result: bm.Result) -> dict[int, int]:
    return {failure.trajectory: failure.step for failure in result.outcome.failures}


def test_some_fail_and_some_do_not():
    assert 0 < len(whole().outcome.failures) < N
    assert len(set(steps_of(whole()).values())) > 1


def test_each_fails_as_it_does_alone():
    for i in range(N):
        alone = bm.trajectory(scheme(), start(), trajectory=i, **RUN)
        expected = steps_of(whole()).get(i)
        assert [f.step for f in alone.outcome.failures] == ([] if expected is None else [expected])


def test_neither_blocks_nor_the_kind_of_program_matter():
    assert steps_of(whole(3, "xla")) == steps_of(whole())


def test_counts_drop_when_trajectories_fail():
    """A record after k steps counts those that have not failed in steps 0 ... k − 1."""
    marks = np.round(whole().times / RUN["step"]).astype(int)
    expected = [N - sum(step < k for step in steps_of(whole()).values()) for k in marks]
    assert [int(n) for n in whole().energy.count] == expected
    assert np.isfinite(whole().energy.mean.values).all()


def test_the_others_do_not_notice():
    """The final states of those that finish are those of a run without the ones that fail, to the round-off of another program."""
    finished = [i for i in range(N) if i not in steps_of(whole())]
    q = np.asarray(whole().final.q)
    assert np.isfinite(q[finished]).all()
    assert np.isnan(np.delete(q, finished, 0)).all()
    for i in finished:
        alone = bm.trajectory(scheme(), start(), trajectory=i, **RUN).final
        np.testing.assert_allclose(q[i], alone.q, rtol=1e-12)


def test_a_failure_says_when_where_and_what_to_do():
    first = whole().outcome.failures[0]
    text = str(whole().outcome)
    assert f"trajectory {first.trajectory}, step {first.step} (t = {first.time:.6g})" in text
    assert first.time == pytest.approx(first.step * RUN["step"])
    assert "smaller step" in text
    assert "bounded=True" in text


@pytest.mark.parametrize("scheme", [bm.Verlet, bm.Midpoint])
def test_a_force_that_is_not_finite_at_the_start_is_told(scheme):
    """No smaller step helps where ∂U/∂q is 0/0; a step that is too long is told otherwise."""
    cone = scheme(bm.mechanical(bm.Euclidean(2), potential=lambda q: jnp.sqrt(q @ q)))
    said = str(bm.simulate(cone, cone.start([0.0, 0.0], velocity=[0.0, 0.0]), step=0.1, steps=3).outcome)
    assert "The derivative of the energy with respect to q is not finite at the start, q = [0., 0.]" in said
    assert "smaller step" not in said
    quartic = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: q[0] ** 4))
    assert "smaller step" in str(bm.simulate(quartic, quartic.start([1e80], velocity=[0.0]), step=1.0, steps=9).outcome)
