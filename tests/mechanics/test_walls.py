"""Walls that exert no force are noticed where they are crossed; contact and constraints on velocities are refused by name."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.order_checks import drift
from bismut.findings.statistics import holm_verdicts
from tests.findings.studies import study


def ball(floor):
    return bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.where(q[0] > 0, 9.81 * q[0], floor))


def fallen(system, steps=100, **more):
    scheme = bm.Verlet(system)
    start = scheme.start(jnp.array([1.0]), velocity=jnp.array([0.0]))
    return bm.simulate(scheme, start, step=0.01, steps=steps, trajectories=2, **more)


def test_a_ball_that_falls_through_an_infinite_floor_is_noticed(tmp_path):
    """Its states stay finite and its energy does not: a line in the header, and no warning, which as an error would lose the result. Whether the
    last states are kept, and where, makes no difference."""
    told = "note: the energy is infinite at the end of 2 of 2 trajectories"
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        through = fallen(ball(jnp.inf))
        stored = [fallen(ball(jnp.inf), keep_final=final, store=tmp_path / str(final)) for final in (True, True, False, False)]
        assert all(told in repr(one) for one in stored)
        both = bm.merge(through, fallen(ball(jnp.inf), first_trajectory=2))
    assert told in repr(through)
    assert told in through._repr_html_()
    assert "at the end of 4 of 4" in repr(both)
    assert "infinite" not in repr(fallen(ball(jnp.inf), steps=10))


@pytest.mark.parametrize("table", [np.array([np.inf, 0.0]), jnp.array([jnp.inf, 0.0])], ids=["numpy", "jax"])
def test_walls_are_read_from_arrays_and_parameters(table):
    read = lambda q: jnp.asarray(table)[jnp.where(q[0] > 0, 1, 0)] + 9.81 * q[0]
    assert "at the end of 2 of 2" in repr(fallen(bm.mechanical(bm.Euclidean(1), potential=read)))
    given = lambda floor: bm.mechanical(
        bm.Euclidean(1), potential=lambda q, parameters: jnp.where(q[0] > 0, 9.81 * q[0], parameters["floor"]), parameters={"floor": floor}
    )
    assert [given(floor).names_infinity for floor in (0.0, jnp.inf, 0.0)] == [False, True, False]


def test_an_infinite_energy_that_was_recorded_is_told():
    """A ball flies through a wall and out of it again: at the end its energy is finite, in between it is not."""
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.where(jnp.abs(q[0]) > 1, 0.0, jnp.inf)))
    start = scheme.start(jnp.array([-2.0]), velocity=jnp.array([1.0]))
    run = bm.simulate(scheme, start, step=0.1, steps=40, every=1, trajectories=2, observe={"H": bm.energy})
    assert "note: the mean of H is infinite at some of its times" in repr(run)
    assert "went through" not in repr(run)


def test_walls_are_noticed_in_sweeps():
    """Of two weights one is 0, and does not fall."""
    weighed = bm.mechanical(
        bm.Euclidean(1), potential=lambda q, parameters: jnp.where(q[0] > 0, parameters["g"] * q[0], jnp.inf), parameters={"g": 1.0}
    )
    assert "at the end of 2 of 4 trajectories" in repr(fallen(weighed, sweep={"g": [0.0, 9.81]}))


def test_an_infinity_that_is_never_reached_is_no_wall():
    """1/∞ = 0 excludes a term, as pairs of a body with itself are excluded: nothing is asked of most systems, and nothing is said of these."""
    assert not bm.mechanical(bm.Euclidean(1), potential=lambda q: q @ q).names_infinity
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(2), potential=lambda q: jnp.sum(1 / jnp.where(jnp.eye(2) > 0, jnp.inf, 2 + q @ q))))
    assert scheme.system.names_infinity
    run = bm.simulate(scheme, scheme.start(jnp.ones(2), velocity=jnp.ones(2)), step=0.1, steps=5, trajectories=2)
    assert "infinite" not in repr(run)


def test_verify_notices_a_step_in_the_potential():
    """A particle in a well crosses a step of 1000 at q = ½ as if it were not there: H jumps by it, at any step size, and its spread does not fall
    with the step as the order foretells."""
    stepped = lambda height: bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q + jnp.where(q[0] > 0.5, height, 0.0))
    for height, verdict in ((1000.0, "fail"), (0.0, "pass")):
        scheme = bm.Verlet(stepped(height))
        findings = holm_verdicts(drift(study(scheme, bm.State(jnp.array([0.0]), jnp.array([1.0])), 0.05)))
        assert {finding.law: finding.verdict for finding in findings}["modified energy"] == verdict, findings


def test_contact_and_velocity_constraints_are_refused_by_name():
    for build in (bm.mechanical, lambda space, **more: bm.System(space, lambda q, v: 0.5 * v @ v, **more)):
        with pytest.raises(ValueError, match=r"Hard contact.*soft repulsion"):
            build(bm.Euclidean(2), contact=lambda q: q[0])
        with pytest.raises(ValueError, match=r"constraints on velocities.*strong friction on the slip"):
            build(bm.Euclidean(2), constraint=lambda q, v: jnp.array([v[0] - q[1] * v[1]]))
        build(bm.Euclidean(2), constraint=lambda p: jnp.array([p @ p - 1.0]))  # the first argument is the point, whatever its name
    for changed, words in (
        ({"contact": 0.5}, r"Hard contact.*soft repulsion"),
        ({"constraint": lambda x, R, v, w: v[:, 0]}, r"constraints on velocities.*strong friction on the slip"),
    ):
        with pytest.raises(ValueError, match=words):
            bm.rigid_bodies(mass=[1.0], inertia=[[1.0, 1.0, 1.0]], **changed)
