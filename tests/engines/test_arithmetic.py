"""What docs/arithmetic.md says: XLA, the native engine and NumPy give the same bits, at special values too, whether numbers are constants or not.

every operation entry by entry, for every kind of number, on all pairs of special values: as arguments, with one constant, with constants alone
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from bismut.engines.native import control, elementwise, indexing, linear, reducing, shaping
from bismut.engines.native.folding import compute, fold
from bismut.engines.native.walk import RULES
from bismut.host import entries, repeated
from tests.engines.cases import CASES, GIVEN, KINDS
from tests.engines.functions import evaluate

EVERY = (
    "float64",
    "int8",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("float32", "uint8", "int16", "uint32", "int64", "uint64", "bool")),
)
AWAY, EVEN = lax.RoundingMethod.AWAY_FROM_ZERO, lax.RoundingMethod.TO_NEAREST_EVEN

# By the kinds of numbers: reals f, integers i, signed ones s, truth values b.
ONE = {
    **{name: ("fi", getattr(lax, name)) for name in ("neg", "sign", "square")},
    "abs": ("fs", lax.abs),
    **{f"integer_pow {y}": ("fi" if y >= 0 else "f", lambda x, y=y: lax.integer_pow(x, y)) for y in (0, 2, 3, 7, -1, -3)},
    **{name: ("f", getattr(lax, name)) for name in ("floor", "ceil", "is_finite", "sqrt")},
    "round away": ("f", lambda x: lax.round(x, AWAY)),
    "round even": ("f", lambda x: lax.round(x, EVEN)),
    "half": ("f", lambda x: lax.reduce_precision(x, 5, 10)),
    "brain": ("f", lambda x: lax.reduce_precision(x, 8, 7)),
    "not": ("ib", lax.bitwise_not),
    "population_count": ("i", lax.population_count),
    **{f"to {kind}": ("fib", lambda x, kind=kind: lax.convert_element_type(x, kind)) for kind in KINDS},
}
NAMES = "cbrt exp exp2 expm1 log log1p logistic sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erf_inv rsqrt"
ELEMENTARY = {name: ("f", getattr(lax, name)) for name in NAMES.split()}
TWO = {
    **{name: ("fi", getattr(lax, name)) for name in ("add", "sub", "mul", "div", "rem")},
    **{name: ("fib", getattr(lax, name)) for name in ("max", "min", "eq", "ne", "lt", "le", "gt", "ge")},
    **{name: ("ib", getattr(lax, f"bitwise_{name}")) for name in ("and", "or", "xor")},
    **{name: ("i", getattr(lax, name)) for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic")},
}
ELEMENTARY_TWO = {name: ("f", getattr(lax, name)) for name in ("pow", "atan2")}


def special(kind):
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        odd = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 7, 31, 64, *([-1, -2, -7] if info.min else [])]
        return np.unique(np.array(odd, kind))
    info = np.finfo(kind)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.max, -info.max, info.tiny * 4, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 2, 3, -3, 0.1, -0.3, 1e10, -3e9]
    return np.array([*odd, 255.5, -129.0, 1e20, np.nextafter(kind.type(0.5), kind.type(0)), 0.3], kind)


def _of_kind(table, kind):
    mine = {"i": "is", "u": "i"}.get(kind.kind, kind.kind)
    return {name: function for name, (kinds, function) in table.items() if set(mine) & set(kinds)}


def _not_numbers(x):
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def _same(found, expected, units=0, what=""):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    same = (found == expected) | (_not_numbers(found) & _not_numbers(expected))
    if expected.dtype.kind == "f":
        same &= (found != 0) | (expected != 0) | (np.signbit(found) == np.signbit(expected))
        with np.errstate(all="ignore"):
            same |= np.abs(found - expected) <= units * np.spacing(np.abs(expected))
    assert same.all(), f"{what}: {found[~same][:5]}, expected {expected[~same][:5]} at {np.argwhere(~same)[:5].tolist()}"


def _flushed(x):
    """Subnormal numbers as XLA has them."""
    x = np.asarray(x)
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x) if x.dtype.kind == "f" else x


@pytest.mark.parametrize("kind", EVERY)
def test_operations_entry_by_entry_have_one_meaning(kind):
    kind = np.dtype(kind)
    values = special(kind)
    x, y = (v.ravel() for v in np.meshgrid(values, values, indexing="ij"))
    ones, twos = _of_kind(ONE, kind), _of_kind(TWO, kind)
    whole = lambda a, x, y: [[f(a) for f in ones.values()], [f(x, y) for f in twos.values()]]
    by_numpy = repeated(whole)(values, x, y)
    by_xla = jax.jit(whole)(values, x, y)
    for name, a, b in zip((*ones, *twos), jax.tree.leaves(by_numpy), jax.tree.leaves(by_xla), strict=True):
        _same(_flushed(a), b, what=f"NumPy and XLA, {name} of {kind}")
    by_native = [*evaluate(lambda a: [f(a) for f in ones.values()], values), *evaluate(lambda x, y: [f(x, y) for f in twos.values()], x, y)]
    for name, a, b in zip((*ones, *twos), by_native, jax.tree.leaves(by_numpy), strict=True):
        _same(a, b, what=f"native and NumPy, {name} of {kind}")


@pytest.mark.parametrize("kind", EVERY)
def test_a_constant_operand_changes_nothing_but_products_with_zero(kind):
    """0 · x is 0 where the zero is a constant, and 0 + x is x, also for −0."""
    kind = np.dtype(kind)
    values, twos = special(kind), _of_kind(TWO, kind)
    some = values[values != 0][:14] if kind.kind == "f" else values[::2]
    call = jax.jit(lambda y, c: [[jnp.stack([f(a, y) for a in c]), jnp.stack([f(y, a) for a in c])] for f in twos.values()])
    found = evaluate(lambda y: call(y, list(some)), values)
    for (name, f), (left, right) in zip(twos.items(), found, strict=True):
        whole = repeated(f)
        _same(left.T, whole(*np.broadcast_arrays(some[:, None], values[None])), what=f"constant left, {name} of {kind}")
        _same(right, whole(*np.broadcast_arrays(values[:, None], some[None])), what=f"constant right, {name} of {kind}")


@pytest.mark.parametrize("kind", [np.dtype(name) for name in ("float64", "int8", "uint64", "bool")])
def test_constants_alone_follow_the_same_meaning(kind):
    values = special(kind)
    for table, count in ((ONE, 1), (TWO, 2)):
        for name, f in _of_kind(table, kind).items():
            equations = jax.make_jaxpr(f)(*[values[0]] * count).eqns
            if not equations:  # a conversion to the same type
                continue
            equation = equations[0]
            rows = [(a,) for a in values] if count == 1 else [(a, b) for a in values for b in values]
            found = [compute(equation.primitive.name, list(row), equation.params) for row in rows]
            assert all(isinstance(x, np.generic) for x in found), name
            _same(np.array(found), repeated(f)(*(np.array(column) for column in zip(*rows, strict=True))), what=f"{name} of {kind}")


def test_products_with_a_constant_zero_are_zero_and_other_zeros_are_not_special():
    """The one place where constants decide more than IEEE 754 does."""
    x = np.array([np.nan, np.inf, -1.0, 0.0])
    zero = jax.jit(lambda x, z: [z * x, z + x, z / x, x - x, x + (-x), x * 0.5 - x / 2])
    product, total, quotient, *nothing = evaluate(lambda x: zero(x, 0.0), x)
    np.testing.assert_array_equal(product, [0, 0, 0, 0])
    np.testing.assert_array_equal(total, x)
    np.testing.assert_array_equal(quotient, [np.nan, 0, -0.0, np.nan])
    for difference in nothing:
        np.testing.assert_array_equal(difference, [np.nan, np.nan, 0, 0])
    assert fold("div", [np.float64(0), None]) is None
    assert np.isnan(compute("mul", [np.float64(0), np.float64(np.inf)], {}))


def test_the_gradient_of_a_norm_at_zero_is_not_a_number_in_any_evaluator():
    gradient = jax.grad(lambda x: jnp.sqrt(x @ x))
    at = np.zeros((2, 3))
    for found in (evaluate(gradient, at), jax.vmap(gradient)(at), repeated(jax.vmap(gradient))(at)):
        assert np.isnan(found).all()


@pytest.mark.parametrize("kind", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_elementary_functions_agree_to_a_few_units_and_exactly_where_they_are_exact(kind):
    kind = np.dtype(kind)
    values = special(kind)
    x, y = (v.ravel() for v in np.meshgrid(values, values, indexing="ij"))
    one, two = (_of_kind(table, kind) for table in (ELEMENTARY, ELEMENTARY_TWO))
    by_native = [*evaluate(lambda a: [f(a) for f in one.values()], values), *evaluate(lambda x, y: [f(x, y) for f in two.values()], x, y)]
    by_numpy = [*repeated(lambda a: [f(a) for f in one.values()])(values), *repeated(lambda x, y: [f(x, y) for f in two.values()])(x, y)]
    by_xla = [*jax.jit(lambda a: [f(a) for f in one.values()])(values), *jax.jit(lambda x, y: [f(x, y) for f in two.values()])(x, y)]
    for name, a, b, c in zip((*one, *two), by_native, by_numpy, by_xla, strict=True):
        _same(a, b, units=4, what=f"native and NumPy, {name}")
        np.testing.assert_allclose(
            c, _flushed(b), rtol=1e-13 if kind == np.float64 else 1e-5, atol=np.finfo(kind).tiny, err_msg=f"NumPy and XLA, {name}"
        )


@cache
def _three():
    """All cases at once: two compilers, not fifty."""
    whole = lambda *given: {name: f(*given) for name, f in CASES.items()}
    one = repeated(whole)
    by_numpy = jax.tree.map(lambda *rows: np.stack(rows), *(one(*row) for row in zip(*GIVEN, strict=True)))
    return evaluate(whole, *GIVEN), by_numpy, jax.jit(jax.vmap(whole))(*GIVEN)


@pytest.mark.parametrize("name", CASES)
def test_operations_on_arrays_have_one_meaning(name):
    by_native, by_numpy, by_xla = (jax.tree.leaves(found[name]) for found in _three())
    for k, (a, b, c) in enumerate(zip(by_native, by_numpy, by_xla, strict=True)):
        _same(a, c, what=f"native and XLA, {name}, result {k}")
        _same(b, c, what=f"NumPy and XLA, {name}, result {k}")


def test_every_rule_is_compared():
    """Whatever has a rule in these files occurs in the cases above; loops over bodies and pairs have tests of their own."""
    rooms = {module.__name__ for module in (control, elementwise, indexing, linear, reducing, shaping)}
    mine = {name for name, rule in RULES.items() if rule.__module__ in rooms}
    met = set(entries.ENTRYWISE)

    def walk(jaxpr):
        for equation in jaxpr.eqns:
            met.add(equation.primitive.name)
            for value in equation.params.values():
                for inner in value if isinstance(value, tuple | list) else (value,):
                    if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                        walk(getattr(inner, "jaxpr", inner))

    for f in CASES.values():
        walk(jax.make_jaxpr(f)(*(x[0] for x in GIVEN)).jaxpr)
    aliases = {
        "call",
        "pjit",
        "closed_call",
        "core_call",
        "custom_vjp_call",
        "custom_vjp_call_jaxpr",
        "remat",
        "remat2",
        "expand_dims",
        "copy_p",
        "linear_solve",
    }
    aliases |= {name for name in mine if name.startswith("scatter_")} | {
        "custom_linear_solve",
        "lu_pivots_to_permutation",
        "checkpoint",
        "platform_index",
    }
    assert mine - met - aliases == set()
