"""Moving and subtracting undo each other:  (q ⊕ v) ⊖ q = v  and  q0 ⊕ (q1 ⊖ q0) = q1."""

import jax
import numpy as np

from bismut.spaces import scale

from .catalogue import BATCH, assert_close, batch_of, directions, largest, law, on, over, points, times, velocities


@law
def test_subtract_undoes_move(space, seed):
    (q,), (v,) = points(space, seed), velocities(space, seed)
    verb = on(space)
    assert_close(verb.subtract(verb.move(q, v), q), v, condition=1 + largest(q, v))


@law
def test_move_undoes_subtract(space, seed):
    q0, q1 = points(space, seed, 2)
    verb = on(space)
    v = verb.subtract(q1, q0)
    assert_close(verb.move(q0, v), q1, condition=1 + largest(v))  # cay⁻¹ grows without bound towards half a turn


@law
def test_a_point_minus_itself_is_zero(space, seed):
    (q,) = points(space, seed)
    assert_close(on(space).subtract(q, q), batch_of(space.zero()), condition=1 + largest(q))


@law
def test_time_scales_the_velocity(space, seed):
    (q,), (v,) = points(space, seed), velocities(space, seed)
    assert_close(on(space).move(q, v, np.full(BATCH, 0.7)), on(space).move(q, times(0.7, v)))


@law
def test_moving_with_zero_velocity_stays(space, seed):
    (q,) = points(space, seed)
    assert_close(on(space).move(q, batch_of(space.zero())), q)


@law
def test_moving_is_multiplication_from_the_right(space, seed):
    """g ⊕ ξ = g τ(ξ): velocities are body velocities."""
    (q,), (v,) = points(space, seed), velocities(space, seed)
    verb = on(space)
    assert_close(verb.move(q, v), verb.multiply(q, verb.tau(v)))


def slope_of_nudge(space, q, e):
    return jax.jvp(lambda s: space.nudge(q, scale(s, e)), (0.0,), (1.0,))[1]


def slope_of_move(space, q, e):
    return jax.jvp(lambda s: space.move(q, e, s), (0.0,), (1.0,))[1]


@law
def test_a_nudge_is_a_move_to_first_order(space, seed):
    """d/ds U(nudge(q, s e)) is the left-trivialised differential U_g·e, whatever the retraction."""
    (q,), (e,) = points(space, seed), directions(space, seed)
    assert_close(over(slope_of_nudge, space)(q, e), over(slope_of_move, space)(q, e), condition=1 + largest(q))
