"""When nothing depends on where a system is on its group, momentum moves by itself."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from bismut.flows import flow
from bismut.programs.evaluation import evaluate

MOMENTS = (1.0, 2.0, 3.3)


def free_body() -> bm.System:
    return bm.mechanical(bm.SO3(), mass=MOMENTS)


@pytest.mark.parametrize("make", [bm.VariationalEuler, bm.RungeKutta4])
def test_the_reduced_step_is_the_whole_step_wherever_that_begins(make):
    scheme = make(free_body())
    m = jnp.array([0.3, -1.0, 0.7])
    there = bm.State(evaluate(bm.SO3().from_rotation_vector, np.array([0.4, 1.0, -2.0])), m)
    step = lambda s, z: evaluate(lambda z: flow(s).advance(z, jnp.asarray(0.2), jnp.zeros(0), 0.0)[0], z)
    whole, alone = step(scheme, there), step(bm.Reduced(scheme), bm.State(jnp.eye(3), m))
    np.testing.assert_allclose(alone.p, whole.p, atol=1e-14)
    assert (np.asarray(alone.q) == np.eye(3)).all()


def test_the_casimir_is_kept_by_the_variational_step_and_not_by_runge_kutta():
    p = {}
    for make in (bm.VariationalEuler, bm.RungeKutta4):
        scheme = bm.Reduced(make(free_body()))
        start = scheme.start(jnp.eye(3), momentum=jnp.array([0.3, -1.0, 3.0]))
        p[make] = np.asarray(bm.trajectory(scheme, start, step=0.2, steps=200, every=200).final.p)
    size = np.sqrt(0.3**2 + 1.0 + 9.0)
    assert abs(np.linalg.norm(p[bm.VariationalEuler]) - size) < 1e-13
    assert abs(np.linalg.norm(p[bm.RungeKutta4]) - size) > 1e-6


@pytest.mark.parametrize(
    "system",
    [
        bm.mechanical(bm.SO3(), mass=MOMENTS, potential=lambda R: R[2, 2]),
        bm.mechanical(bm.SO3(), mass=MOMENTS, noise=lambda R: R[2, 2][None]),
        bm.mechanical(bm.SO3(), mass=MOMENTS, force=lambda R, w: R[2]),
    ],
    ids=["potential", "noise", "force"],
)
@pytest.mark.parametrize("make", [bm.VariationalEuler, bm.EulerMaruyama])
def test_what_depends_on_the_place_cannot_be_reduced(system, make):
    with pytest.raises(BismutError, match="left action"):
        bm.Reduced(make(system))


def test_what_is_no_group_or_no_scheme_is_refused():
    with pytest.raises(BismutError, match="scheme"):
        bm.Reduced(free_body())
    with pytest.raises(BismutError, match="is not one"):
        bm.Reduced(bm.VariationalEuler(bm.mechanical(_Line())))


class _Line(bm.Space):
    """ℝ without its group."""

    def origin(self, dtype=float):
        return jnp.zeros((), dtype)

    zero = origin

    def move(self, q, velocity, time=1.0):
        return q + time * velocity

    def subtract(self, q1, q0):
        return q1 - q0

    def __eq__(self, other):
        return isinstance(other, _Line)

    def __hash__(self):
        return 1
