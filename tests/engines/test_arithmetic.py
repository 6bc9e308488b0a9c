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
from tests.engines.functions import evaluate

EVERY = (
    "float64",
    "int8",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("float32", "uint8", "int16", "uint32", "int64", "uint64", "bool")),
)
KINDS = [np.dtype(name) for name in ("float64", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")]
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


def _same(found, expected, units=0, what=""):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    same = (found == expected) | ((found != found) & (expected != expected))
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


# Whole arrays: a name, a function of x (4,), m (3, 3), k (5,) integers, b (4,) truth values.

NAN = np.nan
CASES = {
    "scatter: apply": lambda x, m, k, b: (x.at[1].apply(jnp.abs), x.at[jnp.array([0, 3])].apply(lambda v: 2 - v)),
    "gather: fill value, known places": lambda x, m, k, b: (x.at[jnp.array([9, 1])].get(mode="fill", fill_value=0), jnp.take(x, jnp.array([7, 0]), mode="fill")),
    "gather: fill value": lambda x, m, k, b: (x.at[k].get(mode="fill", fill_value=7), jnp.take(x, k, mode="fill"), x.at[k].get(mode="clip"), k[k]),
    "scatter: each operation and mode": lambda x, m, k, b: [
        getattr(x.at[k], word)(2.0, mode=mode) for word in ("set", "min", "max") for mode in ("drop", "clip")
    ],
    "short indices": lambda x, m, k, b: (jnp.arange(100.0)[k.astype(jnp.int8)], jnp.arange(400.0).at[k.astype(jnp.uint8)].set(-1.0)[:9]),
    "boolean products": lambda x, m, k, b: (b @ b, jnp.outer(b, b) @ b),
    "preferred type": lambda x, m, k, b: (
        lax.dot(k.astype(jnp.int8), k.astype(jnp.int8), preferred_element_type=jnp.int32),
        lax.dot(m.astype(jnp.float32), m.astype(jnp.float32), preferred_element_type=jnp.float64),
    ),
    "cholesky: not definite": lambda x, m, k, b: (jnp.linalg.cholesky(m - 3 * jnp.eye(3)), jnp.linalg.cholesky(jnp.ones((2, 2)) * (x[3] + 2))),
    "integer quotients": lambda x, m, k, b: [
        (f(k, j.astype(k.dtype)), f(k.astype(jnp.int8), j.astype(jnp.int8))) for f in (jnp.floor_divide, jnp.remainder) for j in (k[::-1], -jnp.ones_like(k), k * 0)
    ],
    "bounds": lambda x, m, k, b: (jnp.clip(x, x[::-1], 1.0), lax.clamp(x[::-1], x, x), jnp.clip(k, 0, k[::-1])),
    "conversions": lambda x, m, k, b: [(x * scale).astype(kind) for scale in (1, 1e3, 1e12, 1e300) for kind in KINDS if kind != np.float32],
    "bitwise reductions": lambda x, m, k, b: [lax.reduce(k, k.dtype.type(z), f, (0,)) for z, f in ((-1, lax.bitwise_and), (0, lax.bitwise_or), (0, lax.bitwise_xor))],
    "order": lambda x, m, k, b: (jnp.sort(x), jnp.argsort(x), lax.sort((b, x, k[:4]), num_keys=2), jnp.argmax(x), jnp.argmin(x), lax.cummax(x)),
    "zeros": lambda x, m, k, b: [(f(x, z), f(z, -x)) for z in [jnp.where(x[3] > 1.5, 0.0, -0.0)] for f in (jnp.maximum, jnp.minimum, jnp.mod, jnp.copysign)],
    "fmod": lambda x, m, k, b: [f(jnp.array([6.0, 0.6, 1e17, 5.5]) * (x[3] * 0 + 1), y) for f in (jnp.fmod, jnp.floor_divide, jnp.mod) for y in (3.0, 0.2, 0.1)],
    "no rounds": lambda x, m, k, b: (lax.scan(lambda c, v: (c + v, c * v), x[0], x[:0]), jnp.cumsum(x[:0]), jnp.max(x[:0], initial=3.0), m[:0] @ x[:3]),
    "16 bits": lambda x, m, k, b: (k.astype(jnp.int16) * k.astype(jnp.int16), (k.astype(jnp.uint16) >> 3) + jnp.uint16(9), x.astype(jnp.int16)),
    "bits of other widths": lambda x, m, k, b: (
        lax.bitcast_convert_type(x, jnp.uint32), lax.bitcast_convert_type(k[:4].reshape(2, 2).astype(jnp.uint32), jnp.float64), lax.bitcast_convert_type(k, jnp.uint8)
    ),
    "loops of many": lambda x, m, k, b: jax.vmap(lambda n, v: lax.while_loop(lambda c: c[0] < n % 7, lambda c: (c[0] + 1, c[1] * 2), (0, v)))(k[:4], x),
    "branches of many": lambda x, m, k, b: jax.vmap(lambda p, v: lax.cond(p, lambda v: -v, lambda v: v * 2, v))(b, x),
    "small matrices": lambda x, m, k, b: (lax.linalg.lu(m * 4)[1:], lax.linalg.triangular_solve(jnp.eye(3) * 2, m, lower=True)),
    "shaping": lambda x, m, k, b: (
        lax.pad(m, 7.0, ((1, -1, 0), (0, 2, 1))), jnp.stack([x, x]), jnp.split(x, 2), m.T, jnp.flip(m, 0), lax.expand_dims(x, (1,)), jnp.unstack(m), m[:, ::2],
        lax.dynamic_slice(m, (k[0], k[1]), (2, 2)), lax.dynamic_update_slice(m, -m[:2, :1], (k[1], k[2])), lax.iota(jnp.int8, 5) * k[0].astype(jnp.int8), x.reshape(2, 2),
    ),
    "reductions": lambda x, m, k, b: (jnp.prod(k), jnp.sum(b), jnp.any(b), jnp.all(b), jnp.min(m, 0), jnp.max(x), lax.cummin(x, reverse=True), lax.cumprod(k), lax.cumsum(k)),
    "switch": lambda x, m, k, b: lax.switch(k[0], [lambda v: v, lambda v: -v, lambda v: v[::-1]], x),
    "scatter: sums and products": lambda x, m, k, b: (k.at[k].add(3), k.at[k].multiply(3), k.at[k].subtract(k)),
    "shared": lambda x, m, k, b: (jnp.diagonal(m), jax.checkpoint(jnp.abs)(x), lax.stop_gradient(x), lax.optimization_barrier(x), jax.nn.relu(x)),
}  # fmt: skip
GIVEN = (
    np.array([[NAN, -0.0, 0.0, 3.0], [1.5, np.inf, -2.0, -3.0], [0.0, -0.0, -np.inf, 2.0], [-1.0, NAN, 7.0, 1.0]]),
    np.array([np.diag([2.0, 3.0, 4.0]), np.arange(9.0).reshape(3, 3) + 7 * np.eye(3), np.ones((3, 3)) + np.eye(3), 16 * np.eye(3)]),
    np.array([[0, 1, 2, 3, 4], [9, -1, 2**31 - 1, -(2**31), 3], [-1, 0, -7, 130, 255], [1, -9, 6, 0, 77]], np.int32),
    np.array([[True, False, True, False], [False] * 4, [True] * 4, [False, True, True, False]]),
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
