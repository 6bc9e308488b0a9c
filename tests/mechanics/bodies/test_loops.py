"""The program of a step of many bodies is loops over bodies and pairs: it does not grow with their number, and little happens between them."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters.partial_eval import dce_jaxpr

import bismut as bm
from bismut.flows import flow, init_cache, step_with_cache
from bismut.programs.evaluation import evaluate
from tests.mechanics.bodies.configurations import scattered
from tests.mechanics.bodies.gas import gas

SCHEMES = {
    "BAOAB": lambda system: bm.Langevin(system, temperature=0.5, friction=0.7),
    "matrices": lambda system: bm.Langevin(system, 0.5, (0.7, np.tile(np.diag([1.0, 2.0, 3.0]) + 0.1, (system.space.count, 1, 1)))),
    "Euler": bm.VariationalEuler,
    "Verlet": bm.Verlet,
}


def dipoles(count: int) -> bm.System:
    acting = bm.dipoles((0.0, 0.0, 1.0)) + bm.soft_spheres() + bm.uniform_field((0.0, 0.0, 1.0), (0.0, 0.0, 1.0))
    return bm.rigid_bodies(mass=np.ones(count), inertia=np.tile([0.1, 0.15, 0.2], (count, 1)), potential=acting)


def step_of(scheme, count: int):
    """The jaxpr of one step, without what nobody reads: the state, what the next step uses, and whether it was solved."""
    state = scheme.start(scattered(count), velocity=(np.zeros((count, 3)), np.zeros((count, 3))))
    stepper, one = flow(scheme), jnp.ones(())

    def step(state, cache, dW, h, t):
        new, cache, solve = step_with_cache(stepper, state, cache, h, dW, t)
        return new, cache, solve.converged

    cache = jax.eval_shape(lambda state: init_cache(stepper, state, one), state)
    jaxpr = jax.make_jaxpr(step)(state, cache, jnp.zeros(scheme.channels), one, one).jaxpr
    return dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0]


def inner(equation) -> list:
    parts = [part for value in equation.params.values() for part in (value if isinstance(value, tuple | list) else (value,))]
    return [jaxpr for jaxpr in (getattr(part, "jaxpr", part) for part in parts) if hasattr(jaxpr, "eqns")]


def between(jaxpr) -> list:
    """The equations that stand in no loop."""
    equations = []
    for equation in jaxpr.eqns:
        called = [] if equation.primitive.name in ("each", "pairs") else inner(equation)
        equations += [e for one in called for e in between(one)] or [equation]
    return equations


def count_all(jaxpr) -> int:
    return sum(1 + sum(count_all(one) for one in inner(equation)) for equation in jaxpr.eqns)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_program_of_a_step_does_not_grow_with_the_bodies(name):
    few, many = (step_of(SCHEMES[name](dipoles(count)), count) for count in (8, 64))
    assert count_all(few) == count_all(many)
    kinds = Counter(equation.primitive.name for equation in between(many))
    forces = 2 if name == "Verlet" else 1  # it looks at both ends, and hands nothing on
    assert kinds["pairs"] == forces
    assert kinds["each"] <= 3 + 4 * forces
    # Arrays over bodies that are not in a loop: kicks, and the constants of the bath.
    large = [e for e in between(many) if e.primitive.name not in ("each", "pairs") and any(v.aval.size >= 64 for v in e.outvars)]
    assert len(large) <= 40, Counter(e.primitive.name for e in large)


@pytest.mark.long
def test_pair_noise_and_the_friction_that_balances_it_are_loops():
    """No matrix of slopes is made: nothing is larger than the values of all pairs, or than the state."""
    few, many = (step_of(bm.VariationalEuler(bm.thermalize(gas(count), 0.5)), count) for count in (4, 12))
    assert count_all(few) == count_all(many)
    assert max(v.aval.size for equation in between(many) for v in equation.outvars) <= 3 * 12 * 11 // 2


def test_a_body_is_solved_by_itself():
    """Free bodies, one of which turns wildly: the others come out the same to the bit as without it."""
    system = lambda count: bm.rigid_bodies(mass=np.ones(count), inertia=np.tile([0.1, 0.15, 0.2], (count, 1)))
    x, R = scattered(4)
    spin = np.random.default_rng(1).normal(size=(4, 3))
    spin[3] *= 200.0

    def end(count):
        scheme = bm.VariationalEuler(system(count))
        state = scheme.start((x[:count], R[:count]), velocity=(spin[:count], spin[:count]))
        return evaluate(lambda state: flow(scheme).advance(state, 0.01, jnp.zeros(0), 0.0)[0], state)

    jax.tree.map(lambda few, many: np.testing.assert_array_equal(few, many[:3]), end(3), end(4))


def test_the_masses_of_bodies_that_differ_are_their_own():
    """Each body as it would move alone, whatever stands beside it: masses, moments and matrices that differ."""
    generator = np.random.default_rng(2)
    count, mass = 3, np.array([1.0, 2.0, 0.5])
    turn = scattered(count, 7)[1]
    inertia = np.einsum("kij,j,klj->kil", turn, [0.3, 0.4, 0.5], turn) * mass[:, None, None]
    x, R = scattered(count)
    v = generator.normal(size=(2, count, 3))

    def end(which):
        scheme = bm.Verlet(bm.rigid_bodies(mass=mass[which], inertia=inertia[which]))
        state = scheme.start((x[which], R[which]), velocity=tuple(v[:, which]))
        return evaluate(lambda state: flow(scheme).advance(state, 0.05, jnp.zeros(0), 0.0)[0], state)

    together = end(np.arange(count))
    alone = jax.tree.map(lambda *parts: jnp.concatenate(parts), *(end(np.array([k])) for k in range(count)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14), together, alone)
