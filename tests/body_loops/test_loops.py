"""A loop over items is the `vmap` it stands for, and so are its derivatives, and theirs; and it stays one equation under all of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters.partial_eval import dce_jaxpr

from bismut.body_loops import Bonds, Pair, each, each_pair, pair_indices, pair_number, pairs, total
from bismut.programs.dependence import affine, depends
from bismut.programs.evaluation import evaluate

COUNT = 4
generator = np.random.default_rng(3)
X, A = jnp.asarray(generator.normal(size=(COUNT, 3))), jnp.asarray(generator.normal(size=(3, 3)))
SPECIES = jnp.array([0, 1, 1, 0])
BONDS = Bonds([0, 3, 2], [3, 1, 3])
TABLE = np.array([[1.0, 2.0], [0.5, 3.0]])


def one(x, species, A):
    """Asymmetric and nonlinear, with a whole number, a constant and a loop inside."""
    y = jax.lax.fori_loop(0, 3, lambda _, y: jnp.sin(A @ y) + x, x)
    return {"y": y * jnp.asarray(TABLE)[species, 0], "n": species + 1, "e": jnp.exp(-y @ y)}


def by_each(x, A):
    return each(lambda x, species: one(x, species, A), x, SPECIES)


def by_vmap(x, A):
    return jax.vmap(lambda x, species: one(x, species, A))(x, SPECIES)


def meeting(a, b, own, A):
    (x, s), (y, u) = a, b
    r = y - A @ x
    energy = jnp.asarray(TABLE)[s, u] * jnp.exp(-0.3 * r @ r) * own
    return Pair(total=(energy, r), first=r * own, second=jnp.outer(x, y) @ r, own=jnp.sin(r))


def by_pairs(bonds):
    count = COUNT * (COUNT - 1) // 2 if bonds is None else len(bonds.i)
    own = jnp.linspace(0.5, 1.5, count)
    return lambda x, A: tuple(pairs(lambda a, b, own: meeting(a, b, own, A), (x, SPECIES), own, bonds))


def by_gather(bonds):
    i, j = pair_indices(COUNT) if bonds is None else (bonds.i, bonds.j)
    own = jnp.linspace(0.5, 1.5, len(i))

    def function(x, A):
        made = jax.vmap(lambda a, b, own: meeting(a, b, own, A))((x[i], SPECIES[i]), (x[j], SPECIES[j]), own)
        return jax.tree.map(lambda leaf: jnp.sum(leaf, 0), made.total), jnp.zeros((COUNT, 3)).at[i].add(made.first).at[j].add(made.second), made.own

    return function


CASES = {"each": (by_each, by_vmap), "pairs": (by_pairs(None), by_gather(None)), "bonds": (by_pairs(BONDS), by_gather(BONDS))}


def real(function):
    """One number of all the real results, so that it has a gradient in which everything takes part."""

    def value(x, A):
        leaves = [leaf for leaf in jax.tree.leaves(function(x, A)) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return sum(jnp.sum(jnp.sin(leaf) * jnp.linspace(0.5, 1.0, leaf.size).reshape(leaf.shape)) for leaf in leaves)

    return value


TRANSFORMS = {
    "value": lambda f: f,
    "gradient": lambda f: jax.grad(real(f), (0, 1)),
    "hessian": lambda f: jax.hessian(real(f)),
    "backward twice": lambda f: jax.grad(lambda x, A: jnp.sum(jnp.sin(jax.grad(real(f))(x, A)))),
    "batch of gradients": lambda f: lambda x, A: jax.vmap(jax.grad(real(f), (0, 1)), (1, 0))(jnp.stack([x, 2 * x], 1), jnp.stack([A, A.T])),
    "gradient of a batch": lambda f: jax.grad(lambda x, A: jnp.sum(jax.vmap(real(f), (0, None))(jnp.stack([x, 2 * x]), A)), (0, 1)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_loop_is_the_vmap_it_stands_for(case, transform):
    """Values also as XLA compiles them; every derivative is a loop of the same kind."""
    run = (lambda f: jax.jit(f)(X, A)) if transform == "value" else (lambda f: evaluate(f, X, A))
    mine, plain = (run(TRANSFORMS[transform](function)) for function in CASES[case])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11), mine, plain)


def test_a_loop_runs_without_compilation():
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), by_pairs(BONDS)(X, A), evaluate(by_gather(BONDS), X, A))


def equations(jaxpr) -> list:
    """All equations, those inside others included."""
    inner = lambda params: [getattr(p, "jaxpr", p) for p in jax.tree.leaves(list(params.values()), is_leaf=lambda p: hasattr(p, "eqns"))]
    return [e for eqn in jaxpr.eqns for e in (eqn, *(e for j in inner(eqn.params) if hasattr(j, "eqns") for e in equations(j)))]


@pytest.mark.parametrize("transform", ["value", "gradient", "hessian", "batch of gradients"])
def test_pairs_stay_loops_whose_length_does_not_know_how_many_there_are(transform):
    """Outside the loops nothing but sums and copies has the size of the bodies."""

    def count(bodies: int):
        energy = lambda x, A: pairs(lambda a, b, _: Pair(total=jnp.cos((b - A @ a) @ (b - a))), x).total
        closed = jax.make_jaxpr(TRANSFORMS[transform](energy))(jnp.ones((bodies, 3)), A)
        assert {"pairs"} <= {e.primitive.name for e in closed.jaxpr.eqns}
        return len(equations(closed.jaxpr))

    assert count(4) == count(32)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8])
def test_a_pair_is_held_where_its_number_says(count):
    i, j = pair_indices(count)
    assert len(i) == count * (count - 1) // 2
    assert (i < j).all()
    np.testing.assert_array_equal(pair_number(i, j, count), np.arange(len(i)))
    a, b = each_pair(jnp.arange(count))
    np.testing.assert_array_equal((a, b), (i, j))


def test_one_body_has_no_pairs():
    made = evaluate(lambda x: pairs(lambda a, b, _: Pair(total=a @ b, first=a, second=b, own=a), x), np.ones((1, 3)))
    assert made.total == 0
    np.testing.assert_array_equal(made.bodies, np.zeros((1, 3)))
    assert made.own.shape == (0, 3)


def test_what_is_known_stays_inside_and_what_is_traced_is_shared():
    """A constant inside can be folded by whoever compiles the loop."""
    closed = jax.make_jaxpr(lambda x, A: each(lambda x: jnp.asarray(TABLE) @ x[:2] + A[0, :2], x))(X, A)
    (equation,) = (e for e in closed.jaxpr.eqns if e.primitive.name == "each")
    assert equation.params["layout"].shared == 1
    np.testing.assert_array_equal(equation.params["jaxpr"].consts[0], TABLE)


def test_a_total_is_the_sum_of_what_each_gives():
    energy = lambda x: jnp.sin(A @ x) @ x
    np.testing.assert_allclose(*evaluate(lambda x: (total(energy, x), jnp.sum(each(energy, x))), X), rtol=1e-13)
    np.testing.assert_allclose(*evaluate(lambda x: (jax.grad(lambda x: total(energy, x))(x), jax.vmap(jax.grad(energy))(x)), X), rtol=1e-13)


def loops(function, *arguments) -> list:
    """The loops of a function, with what nobody reads left out."""
    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    return [e for e in dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0].eqns if e.primitive.name in ("each", "pairs")]


def test_results_that_nobody_reads_are_not_computed():
    """Neither is what only they need: operands and work of every item."""
    own = jnp.linspace(0.5, 1.5, COUNT * (COUNT - 1) // 2)
    meet = lambda a, b, own: Pair(total=jnp.exp(a[0] @ b[0]), first=jnp.sin(a[1]), second=jnp.sin(b[1]), own=own**2)
    parts = lambda x, y, own: pairs(meet, (x, y), own)
    every = jax.jit(parts)(X, 2 * X, own)
    readers = ((lambda made: made.total, {"exp", "dot_general"}), (lambda made: made.bodies, {"sin"}), (lambda made: made.own, {"integer_pow"}))
    for read, names in readers:
        (loop,) = loops(lambda x, y, own, read=read: read(parts(x, y, own)), X, 2 * X, own)
        assert {e.primitive.name for e in loop.params["jaxpr"].jaxpr.eqns} == names
        assert len(loop.invars) == 1
        whole = jax.jit(lambda x, y, own, read=read: read(parts(x, y, own)))(X, 2 * X, own)
        np.testing.assert_array_equal(whole, read(every))


def test_what_an_item_hands_on_goes_around_the_loop():
    (loop,) = loops(lambda x, y: each(lambda x, y: (y, jnp.sin(x)), x, y), X, 2 * X)
    assert len(loop.outvars) == 1
    assert not loops(lambda x: each(lambda x: x, x), X)


def test_a_result_may_be_a_number_that_no_item_knows_of():
    """As where a rotation turns no disk but by an angle that is the same for all."""
    sine, one = jax.jit(lambda x: each(lambda x: (jnp.sin(x), 1.0), x))(X)
    np.testing.assert_array_equal(sine, jnp.sin(X))
    np.testing.assert_array_equal(one, np.ones(COUNT))


def test_numbers_that_are_the_same_for_all_are_no_operands():
    known, traced = np.tile([1.0, 2.0, 3.0], (COUNT, 1)), jnp.linspace(0, 1, COUNT)
    (loop,) = loops(lambda x, y: each(lambda x, k, x_again, y: x @ k + x_again @ x + y, x, known, x, y), X, traced)
    assert len(loop.invars) == 2


def test_what_a_loop_depends_on_is_seen_through_it():
    """Only what reaches a result counts: positions reach the total, but of a difference nothing is left."""
    total = lambda x, own: pairs(lambda a, b, own: Pair(total=a @ b, own=own), x, own)
    own = jnp.ones(COUNT * (COUNT - 1) // 2)
    assert depends(lambda x: total(x, own).total, X)
    assert not depends(lambda x: total(x, own).own, X)
    assert affine(lambda x: each(lambda x, y: jnp.asarray(TABLE) @ x[:2] * y[0], x, X), X)
    assert not affine(lambda x: each(lambda x: x * x, x), X)
