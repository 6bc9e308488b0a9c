"""Functions whose derivatives the user has written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError

quartic = jax.custom_vjp(lambda x: 0.25 * x**4)
quartic.defvjp(lambda x: (quartic(x), x), lambda x, g: (g * x**3,))


def test_a_reverse_derivative_alone_is_enough_where_only_forces_are_taken():
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=lambda q: jnp.sum(quartic(q))))
    state = bm.State(jnp.ones(1), jnp.zeros(1))
    plain = bm.Verlet(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=lambda q: jnp.sum(0.25 * q**4)))
    step = lambda scheme: bm.trajectory(scheme, state, step=0.1, steps=3, seed=0).q
    assert jnp.allclose(step(scheme), step(plain), rtol=1e-13)


def test_where_forward_derivatives_are_needed_the_function_is_named_with_its_remedy():
    with pytest.raises(BismutError, match=r"lagrangian: .*custom_vjp.*jax\.custom_jvp"):
        bm.Midpoint(bm.System(space=bm.Euclidean(1), lagrangian=lambda q, v: jnp.sum(0.5 * v * v + quartic(v)) - q @ q)).start(
            jnp.ones(1), velocity=jnp.ones(1)
        )


@jax.custom_vjp
def drag_law(v):
    return -0.3 * v * jnp.abs(v)


drag = drag_law
drag.defvjp(lambda v: (drag(v), v), lambda v, g: (-0.6 * g * jnp.abs(v),))
IMPLICIT = {
    "midpoint": bm.Midpoint,
    "trapezoid": bm.Verlet,
    "phase space": bm.HamiltonianMidpoint,
    "implicit Euler": bm.ImplicitEulerMaruyama,
    "bath": lambda system: bm.Langevin(system, 1.0, 1.0, bm.GLA(bm.Midpoint)),
}


def dragged(force, **options) -> bm.System:
    return bm.mechanical(bm.Euclidean(2), mass=1.3, potential=lambda q: jnp.sum(jnp.cos(q)), force=lambda q, v: force(v), **options)


@pytest.mark.parametrize("make", IMPLICIT.values(), ids=IMPLICIT)
def test_a_force_that_sees_the_velocity_is_solved_by_reverse_mode(make):
    state = bm.State(jnp.array([1.0, 0.5]), jnp.array([0.3, -0.7]))
    step = lambda force: bm.trajectory(make(dragged(force)), state, step=0.2, steps=3, seed=0).q
    assert jnp.allclose(step(drag), step(lambda v: -0.3 * v * jnp.abs(v)), rtol=1e-12)


def test_under_constraints_too():
    state = bm.State(jnp.array([1.0, 0.0]), jnp.array([0.0, -0.7]))
    on_circle = lambda force: bm.Midpoint(dragged(force, constraint=lambda q: jnp.array([q @ q - 1.0])))
    step = lambda force: bm.trajectory(on_circle(force), state, step=0.1, steps=3, seed=0).q
    assert jnp.allclose(step(drag), step(lambda v: -0.3 * v * jnp.abs(v)), rtol=1e-11)


def test_the_derivative_of_an_implicit_step_is_refused_in_a_sentence():
    scheme = bm.Midpoint(dragged(drag))
    end = lambda q: bm.trajectory(scheme, bm.State(q, jnp.array([0.3, -0.7])), step=0.2, steps=1, seed=0).q[-1, 0]
    with pytest.raises(BismutError, match=r"^drag_law has a jax\.custom_vjp.*jax\.custom_jvp"):
        jax.grad(end)(jnp.array([1.0, 0.5]))


def bend(q):
    return jnp.sin(q[0]) * q[1] + 0.5 * jnp.sum(q**2)


reverse_bend = jax.custom_vjp(bend)
reverse_bend.defvjp(lambda q: (bend(q), q), lambda q, g: (jax.grad(bend)(q) * g,))
FEW = {"step": 0.05, "steps": 3, "seed": 0}


def on_a_surface(bend, moving=False) -> bm.System:
    still, turning = (lambda q: jnp.array([bend(q) - 0.4])), (lambda q, t: jnp.array([bend(q * (1 + 0.1 * t)) - 0.4]))
    return bm.mechanical(bm.Euclidean(3), mass=1.3, potential=lambda q: jnp.cos(q[2]), constraint=turning if moving else still)


CONSTRAINED = {"Verlet": bm.Verlet, "BAOAB": lambda system: bm.Langevin(system, temperature=1.0, friction=1.0, splitting=bm.BAOAB)}


@pytest.mark.parametrize("make", CONSTRAINED.values(), ids=CONSTRAINED)
def test_a_constraint_with_gradients_alone_is_kept_as_any_other(make):
    def motion(bend):
        scheme = make(on_a_surface(bend))
        start = scheme.start(jnp.array([0.3, 0.4, 0.5]), velocity=jnp.array([0.1, 0.2, 0.3]), project=True)
        return bm.trajectory(scheme, start, **FEW).q

    assert jnp.allclose(motion(reverse_bend), motion(bend), rtol=1e-11)


def test_a_moving_constraint_too():
    def motion(bend):
        scheme = bm.Verlet(on_a_surface(bend, moving=True))
        start = scheme.start(jnp.array([0.3, 0.4, 0.5]), velocity=jnp.array([0.1, 0.2, 0.3]), project=True)
        return bm.trajectory(scheme, start, **FEW).q

    assert jnp.allclose(motion(reverse_bend), motion(bend), rtol=1e-11)


BALANCED = {
    "noise": lambda gamma: bm.VariationalEuler(bm.thermalize(noisy(noise=lambda q: jnp.array([gamma(q), q[1]])), temperature=1.0)),
    "noise Hamiltonian": lambda gamma: bm.HamiltonianMidpoint(
        bm.thermalize(noisy(noise_hamiltonian=lambda q, p: jnp.array([gamma(q) * p[0], p[1]])), temperature=1.0)
    ),
}


def noisy(**noise) -> bm.System:
    return bm.System(bm.Euclidean(2), lambda q, v: 0.5 * v @ v - 0.5 * q @ q, **noise)


@pytest.mark.parametrize("make", BALANCED.values(), ids=BALANCED)
def test_noise_with_gradients_alone_is_balanced_as_any_other(make):
    state = bm.State(jnp.array([0.3, 0.4]), jnp.array([0.1, -0.2]))
    motion = lambda gamma: bm.trajectory(make(gamma), state, **FEW).q
    assert jnp.allclose(motion(reverse_bend), motion(bend), rtol=1e-11)


def test_a_report_names_the_constraint_that_has_gradients_alone():
    scheme = bm.Verlet(on_a_surface(reverse_bend))
    start = scheme.start(jnp.array([0.3, 0.4, 0.5]), velocity=jnp.array([0.1, 0.2, 0.3]), project=True)
    report = bm.verify(scheme, start, step=0.05, order=False, budget=0.0)
    assert report["constraints"].held
    for finding in report:
        assert "a function of the step" not in finding.how


def by_python(q, **how):
    return jax.pure_callback(lambda q: np.asarray(0.5 * np.sum(np.asarray(q) ** 2)), jax.ShapeDtypeStruct((), q.dtype), q, **how)


def with_gradient(value):
    half_square = jax.custom_vjp(value)
    half_square.defvjp(lambda q: (value(q), q), lambda q, g: (g * q,))
    return half_square


until = lambda q: jax.lax.while_loop(lambda now: now[0] < 3, lambda now: (now[0] + 1, now[1] + q @ q), (0, 0.0))[1]
WITHOUT = {
    "loop": (until, "Reverse-mode differentiation does not work"),
    "Python": (lambda q: by_python(q, vmap_method="sequential"), "callbacks do not support JVP"),
    "Python, one at a time": (with_gradient(by_python), "vmap is only supported"),
}


@pytest.mark.parametrize(("function", "why"), WITHOUT.values(), ids=WITHOUT)
@pytest.mark.parametrize("place", ["potential", "noise", "constraint"])
def test_a_function_without_a_gradient_is_refused_by_name(function, why, place):
    given = function if place == "potential" else lambda q: jnp.array([function(q)])
    with pytest.raises(BismutError, match=rf"^{place}: .* has no gradient.*{why}"):
        bm.mechanical(bm.Euclidean(2), **{place: given})


def test_what_calls_python_runs_with_a_gradient_of_its_own():
    """Such a function, and a loop that does not depend on the state."""
    halved = lambda: jax.lax.while_loop(lambda x: x > 0.6, lambda x: x / 2, 1.0)
    half_square = with_gradient(lambda q: by_python(q, vmap_method="sequential"))
    motion = lambda U: bm.trajectory(bm.Verlet(bm.mechanical(bm.Euclidean(2), potential=U)), bm.State(jnp.ones(2), jnp.zeros(2)), **FEW).q
    assert jnp.allclose(motion(lambda q: half_square(q) * halved() * 2), motion(lambda q: 0.5 * q @ q), rtol=1e-13)
