"""J⁻ = J⁺ for any two ends, solution or not, exactly when S_d is invariant."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.flows import noether_momenta
from tests.flows.catalogue import increments, once, scheme, system
from tests.systems import random_state

STEP = 0.1


def both(action: bm.Action, name: str) -> tuple[np.ndarray, np.ndarray]:
    """J⁻ and J⁺ between two unrelated points, with noise."""
    q0, q1 = random_state(action.system, 11).q, random_state(action.system, 12).q
    left, right = once(lambda a, b, w: noether_momenta(action, name, a, b, STEP, w))(q0, q1, increments(action.system, STEP)[0])
    return np.asarray(left), np.asarray(right)


INVARIANT = [("heavy_top", "vertical", name) for name in ("euler left", "euler right", "midpoint", "verlet", "midpoint exp", "discrete")]
INVARIANT += [("bodies", symmetry, "midpoint") for symmetry in ("momentum", "angular")]


@pytest.mark.parametrize(("space", "symmetry", "name"), INVARIANT)
def test_the_momenta_of_an_invariant_action_agree(space, symmetry, name):
    left, right = both(scheme(space, name), symmetry)
    assert np.abs(left).max() > 0.1
    np.testing.assert_allclose(left, right, rtol=1e-13, atol=1e-13 * np.abs(left).max() / STEP)


def broken(**parts) -> bm.System:
    whole = {"potential": lambda R: 3.0 * R[2, 2], "noise": lambda R: jnp.array([0.5 * R[2, 2]])}
    return bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5], symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))}, **(whole | parts))


@pytest.mark.parametrize("parts", [{"noise": lambda R: jnp.array([0.5 * R[0, 2]])}, {"potential": lambda R: R[1, 2]}], ids=["noise", "potential"])
def test_they_differ_when_noise_or_potential_breaks_the_symmetry(parts):
    left, right = both(bm.VariationalEuler(broken(**parts)), "vertical")
    assert abs(left - right) > 1e-3


def test_their_difference_is_the_torque_of_what_breaks_the_symmetry():
    """Left end: J⁺ − J⁻ = h dL·ξ_Q + dγ·ξ_Q ΔW at q0, here for γ = ½ R₀₂ and ξ = e₃, which turns (R₀₂, R₁₂) by a right angle."""
    action = bm.VariationalEuler(broken(noise=lambda R: jnp.array([0.5 * R[0, 2]])))
    left, right = both(action, "vertical")
    R, dW = random_state(action.system, 11).q, increments(action.system, STEP)[0]
    np.testing.assert_allclose(right - left, -0.5 * R[1, 2] * dW[0], rtol=1e-11)


def test_the_noise_of_the_top_is_symmetric_about_the_vertical_only():
    """The same top has no conserved momentum about a horizontal axis."""
    top = system("heavy_top")
    turned = bm.System(top.space, top.lagrangian, top.noise, symmetries={"level": bm.left_rotation((1.0, 0.0, 0.0))})
    left, right = both(bm.Midpoint(turned), "level")
    assert abs(left - right) > 1e-3
