"""Walls that exert no force are noticed where they are crossed; contact and constraints on velocities are refused by name."""

import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.errors import BismutWarning
from bismut.findings.chance import judged
from bismut.findings.drift import drift


def ball(floor):
    return bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.where(q[0] > 0, 9.81 * q[0], floor))


def test_a_ball_that_falls_through_an_infinite_floor_is_noticed():
    """Its states stay finite and its energy does not: a warning, and a line in the header."""
    scheme = bm.Verlet(ball(jnp.inf))
    start = scheme.start(jnp.array([1.0]), velocity=jnp.array([0.0]))
    with pytest.warns(BismutWarning, match="went through it"):
        through = bm.simulate(scheme, start, step=0.01, steps=100, trajectories=2)
    assert "note: the energy is infinite at the end of 2 of 2 trajectories" in repr(through)
    above = bm.simulate(scheme, start, step=0.01, steps=10, trajectories=2)
    assert "infinite" not in repr(above)


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
        findings = judged(drift(scheme, bm.State(jnp.array([0.0]), jnp.array([1.0])), step=0.05, seed=0))
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
