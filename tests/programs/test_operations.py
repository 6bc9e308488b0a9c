"""One meaning for each operation, as docs/arithmetic.md says: XLA, the native engine and NumPy give the same, whether numbers are constants or not.

entry by entry    the same bits for every kind of number, on all pairs of special values: as arguments, with one constant, with constants alone
on arrays         the same bits for every operation, out-of-range indices, fill values, batched conditions among them
programs          the same to round-off, and bits that depend neither on the width nor on the place of a trajectory

Every operation that is registered occurs in one of these tables, or a test fails.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from bismut.programs import equations, trace
from bismut.programs.evaluation import evaluator
from bismut.programs.operation import lookup, registered
from tests.engines.functions import evaluate
from tests.engines.test_decompositions import DISCRETE, EXACT, SMOOTH
from tests.programs.cases import CASES, GIVEN, KINDS, PROGRAMS, RANDOM, N, vectors
from tests.programs.test_gather_scatter import DRAWN, MOVED, X

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


def subnormal(kind):
    """Numbers that XLA takes for zero."""
    tiny = np.finfo(kind).smallest_subnormal if kind.kind == "f" else 0
    return np.array([tiny, -tiny, 3 * tiny, np.finfo(kind).tiny / 2], kind) if kind.kind == "f" else np.zeros(0, kind)


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
    values = np.concatenate([special(kind), subnormal(kind)])
    x, y = (v.ravel() for v in np.meshgrid(values, values, indexing="ij"))
    ones, twos = _of_kind(ONE, kind), _of_kind(TWO, kind)
    together = lambda a, x, y: [[f(a) for f in ones.values()], [f(x, y) for f in twos.values()]]
    by_numpy = evaluator(together)(values, x, y)
    by_xla = jax.jit(together)(values, x, y)
    normal = ~np.isin(values, subnormal(kind)) if kind.kind == "f" else np.full(values.shape, True)
    pairs = (normal[:, None] & normal).ravel()
    for k, (name, a, b) in enumerate(zip((*ones, *twos), jax.tree.leaves(by_numpy), jax.tree.leaves(by_xla), strict=True)):
        where = normal if k < len(ones) else pairs
        _same(_flushed(a)[where], np.asarray(b)[where], what=f"NumPy and XLA, {name} of {kind}")
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
        whole = evaluator(f)
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
            operation = lookup(equation.primitive.name)
            found = [operation.compute(list(row), operation.settings(equation.params))[()] for row in rows]
            assert all(isinstance(x, np.generic) for x in found), name
            _same(np.array(found), evaluator(f)(*(np.array(column) for column in zip(*rows, strict=True))), what=f"{name} of {kind}")


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
    assert lookup("div").fold(np.float64(0), None) is None
    assert np.isnan(lookup("mul").compute([np.float64(0), np.float64(np.inf)], {}))


def test_the_gradient_of_a_norm_at_zero_is_not_a_number_in_any_evaluator():
    gradient = jax.grad(lambda x: jnp.sqrt(x @ x))
    at = np.zeros((2, 3))
    for found in (evaluate(gradient, at), jax.vmap(gradient)(at), evaluator(jax.vmap(gradient))(at)):
        assert np.isnan(found).all()


@pytest.mark.parametrize("kind", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_elementary_functions_agree_to_a_few_units_and_exactly_where_they_are_exact(kind):
    kind = np.dtype(kind)
    values = special(kind)
    x, y = (v.ravel() for v in np.meshgrid(values, values, indexing="ij"))
    one, two = (_of_kind(table, kind) for table in (ELEMENTARY, ELEMENTARY_TWO))
    by_native = [*evaluate(lambda a: [f(a) for f in one.values()], values), *evaluate(lambda x, y: [f(x, y) for f in two.values()], x, y)]
    by_numpy = [*evaluator(lambda a: [f(a) for f in one.values()])(values), *evaluator(lambda x, y: [f(x, y) for f in two.values()])(x, y)]
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
    one = evaluator(whole)
    by_numpy = jax.tree.map(lambda *rows: np.stack(rows), *(one(*row) for row in zip(*GIVEN, strict=True)))
    return evaluate(whole, *GIVEN), by_numpy, jax.jit(jax.vmap(whole))(*GIVEN)


@pytest.mark.parametrize("name", CASES)
def test_operations_on_arrays_have_one_meaning(name):
    by_native, by_numpy, by_xla = (jax.tree.leaves(found[name]) for found in _three())
    for k, (a, b, c) in enumerate(zip(by_native, by_numpy, by_xla, strict=True)):
        units = 2 if "cholesky" in name else 0  # ours fuses products into sums, LAPACK's kernel is chosen by the processor
        _same(a, c, units, what=f"native and XLA, {name}, result {k}")
        _same(b, c, what=f"NumPy and XLA, {name}, result {k}")


def one_by_one(function, *arrays, by=evaluator):
    """function(*arrays) for every entry of their first axis, by default in NumPy."""
    each_ = by(function)
    return jax.tree.map(lambda *parts: np.stack(parts), *(each_(*row) for row in zip(*arrays, strict=True)))


GROUPS = {"large": lambda name: "large" in name or name == "written over", "loops": lambda name: "each" in name or "pairs" in name or name == "bonds"}
GROUPS["small"] = lambda name: not (GROUPS["large"](name) or GROUPS["loops"](name))


@pytest.mark.parametrize("group", GROUPS)
def test_programs_have_one_meaning(group):
    """All of a group in one program: small arrays are lanes where nothing else is large and nothing loops over bodies."""
    cases = {name: case for name, case in PROGRAMS.items() if GROUPS[group](name)}
    counts = np.cumsum([0, *(len(case) - 1 for case in cases.values())])
    arrays = [x[np.arange(N) % len(x)] for case in cases.values() for x in case[1:]]
    together = lambda *given: {name: case[0](*given[i:j]) for (name, case), i, j in zip(cases.items(), counts, counts[1:], strict=False)}
    expected, by_native, by_xla = one_by_one(together, *arrays), evaluate(together, *arrays), one_by_one(together, *arrays, by=jax.jit)
    for name in cases:
        for who, results in (("native", by_native), ("XLA", by_xla)):
            for a, b in zip(jax.tree.leaves(results[name]), jax.tree.leaves(expected[name]), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13, err_msg=f"{who}, {name}")
                assert a.dtype == b.dtype


@pytest.mark.parametrize("name", ["functions", "while", "branch", "large arrays", "pairs"])
def test_bits_depend_neither_on_the_width_nor_on_the_place(name):
    function, *arrays = PROGRAMS[name]
    eight, *others = (jax.tree.leaves(evaluate(function, *arrays, width=w)) for w in (8, 4, 16))
    moved = jax.tree.leaves(evaluate(function, *(x[5:] for x in arrays)))
    for other in others:
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(eight, other, strict=True))
    assert all(np.array_equal(a[5:], b, equal_nan=True) for a, b in zip(eight, moved, strict=True))


def test_what_is_shared_is_an_argument():
    x, scale, matrix = vectors(3), np.array(0.7), RANDOM.normal(size=(3, 3))
    function = lambda x, scale, matrix: jnp.sin(scale) * (matrix @ matrix @ x) + jax.lax.fori_loop(0, 3, lambda i, s: s * scale, 1.0)
    expected = one_by_one(lambda x: function(x, scale, matrix), x)
    np.testing.assert_allclose(evaluate(function, x, numbers=(scale, matrix)), expected, rtol=1e-13, atol=1e-13)


def test_single_precision():
    x = vectors(3, 3).astype(np.float32)
    function = lambda x: jnp.sin(x) @ x.T / (1 + jnp.abs(x))
    np.testing.assert_allclose(evaluate(function, x, width=16), one_by_one(function, x), rtol=3e-6, atol=1e-6)


def test_an_operation_that_jumps_says_so():
    """Values on both sides of a place, 10⁻¹² apart, that are not neighbours. An angle at its cut is asked about apart (`Question.cut`)."""
    places, width = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]), 1e-12
    silent, seen = set(), set()
    for table, rest in ((ONE | ELEMENTARY, ()), (TWO | ELEMENTARY_TWO, (np.ones_like(places),))):
        for name, (kinds, f) in table.items():
            if "f" not in kinds or name == "atan2":
                continue
            compute, program = evaluator(f), trace(f, places, *rest).program
            below, above = (np.asarray(compute(places + side, *rest), float) for side in (-width, width))
            jump = np.abs(above - below)
            if np.any(np.isfinite(jump) & (jump > 1e-3) & (np.abs(above) < 1e6)):  # not at a pole
                seen.add(name)
                silent |= {name} if not any(lookup(e.primitive.name).may_jump(e) for e in equations(program)) else set()
    assert seen >= {"sign", "floor", "ceil", "round even", "rem", "lt", "ge", "to int8"}
    assert not silent


def _names(function, *inputs) -> set[str]:
    """Operations that a function consists of."""
    return {equation.primitive.name for equation in equations(trace(function, *inputs).program)}


OTHER_RELEASES = {"copy_p", "expand_dims", "stack", "call", "linear_solve", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_sub"}


def test_every_operation_is_compared():
    """Whatever is registered occurs in a table that the tests here, of decompositions or of random keys compare; or another release of JAX has it."""
    met = set()
    for f in CASES.values():
        met |= _names(f, *(x[0] for x in GIVEN))
    for f, *arrays in PROGRAMS.values():
        met |= _names(f, *(x[0] for x in arrays))
    for f, x in SMOOTH.values():
        met |= _names(jax.value_and_grad(f), x[0])
    for f in (*DISCRETE.values(), *(case[0] for case in EXACT.values())):
        met |= _names(f, vectors(20)[0])
    for f in MOVED.values():
        met |= _names(f, X)
    for f in DRAWN.values():
        met |= _names(f, jax.random.key(1))
    for table, count in ((ONE, 1), (ELEMENTARY, 1), (TWO, 2), (ELEMENTARY_TWO, 2)):
        for kinds, f in table.values():
            met |= _names(f, *[np.ones(2, {"f": float, "i": np.int32, "b": bool}[kinds[0]])] * count)
    computed = {name for name, known in registered().items() if known.evaluate or known.emit or known.decompose}
    assert computed - met - OTHER_RELEASES == set(), "name each in a table of this file, or in PROGRAMS of tests/programs/cases.py"
