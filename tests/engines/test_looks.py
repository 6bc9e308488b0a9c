"""Who looks when: a call of either engine gives the same rows, with a first look before its steps or without.

rows of watch i  =  [now, if `first` names it]  +  [every multiple of every[i] that is passed]
"""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.engines.engine import Schedule
from bismut.ensembles import request

H = 0.1
TIME = {f"t{i}": (lambda state, t: t) for i in range(3)}


def program(mode):
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: 1 - jnp.cos(q[0])))
    start = scheme.start(jnp.ones(1), velocity=jnp.zeros(1))
    return request(scheme, start, step=H, steps=9, trajectories=3, observe=TIME, mode=mode)


@pytest.fixture(scope="module", params=["native", "xla"])
def asked(request):
    return program(request.param)


@pytest.mark.parametrize(
    ("ticks", "stride", "every", "passed", "first", "seen"),
    [
        (4, 1, (1, 2, 0), 0, (True, True, False), ([0, 1, 2, 3, 4], [0, 2, 4], [])),
        (4, 1, (1, 2, 0), 0, (False, True, True), ([1, 2, 3, 4], [0, 2, 4], [0])),
        (2, 3, (3, 6, 3), 0, (True, False, True), ([0, 3, 6], [6], [0, 3, 6])),
        (3, 2, (4, 2, 0), 2, (), ([4, 8], [4, 6, 8], [])),
        (0, 0, (0, 0, 0), 5, (True, False, True), ([5], [], [5])),
        (1, 4, (0, 0, 0), 0, (), ([], [], [])),
    ],
)
def test_rows_are_those_that_are_due(asked, ticks, stride, every, passed, first, seen):
    program, course, numbers = asked.program, asked.courses[0], asked.shared[0]
    states = asked.samplers[0](asked.numbers(0), np.arange(3))
    batch = program.watch(course, numbers, program.begin(course, numbers, asked.numbers(0), states, passed))
    after, rows = program.advance(course, numbers, batch, Schedule(ticks, stride, every, passed, first))
    assert after.step == passed + ticks * stride
    for row, steps in zip(rows, seen, strict=True):
        found = np.zeros((0, 3)) if isinstance(row, tuple) else row
        np.testing.assert_allclose(found, np.tile(H * np.array(steps, float).reshape(-1, 1), (1, 3)), atol=1e-15)


def test_a_batch_of_one_stands_for_all(asked):
    program, course, numbers = asked.program, asked.courses[0], asked.shared[0]
    one = asked.samplers[0](asked.numbers(0), np.arange(3))
    many = type(one)(np.tile(one.q, (3, 1)), np.tile(one.p, (3, 1)))
    alike, each = (program.states(program.begin(course, numbers, asked.numbers(0), states)) for states in (one, many))
    assert np.array_equal(alike.q, each.q)
    assert alike.p.shape == (3, 1)
