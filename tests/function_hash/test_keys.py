"""Functions that do the same have equal keys; functions that may not have different ones."""

import functools
import io
import types
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.function_hash import key_of


def same(f, g) -> bool:
    return key_of(f) == key_of(g) and hash(key_of(f)) == hash(key_of(g))


def spring(k):
    return lambda q: 0.5 * k * q**2


def nested(k):
    def outer(q):
        inner = lambda x: k[0] * jnp.sin(x)
        return inner(q) + spring(k[1])(q)

    return outer


class Model:
    def __init__(self, k):
        self.k = k

    def energy(self, q):
        return self._scaled(q)

    def _scaled(self, q):
        return self.k * q * STRENGTH

    def __call__(self, q):
        return self.energy(q)


class Pair(NamedTuple):
    a: float
    b: float


@dataclass(frozen=True)
class Frozen:
    k: float
    tail: tuple = ()

    def energy(self, q):
        return self.k * q


STRENGTH = 1.0
SETTINGS = types.ModuleType("settings_of_a_user")


def uses_a_global(q):
    return STRENGTH * q


def with_defaults(k):
    def function(q, c=k, *, d=2 * k):
        return c * q + d

    return function


def recursive(depth):
    def down(n):
        return depth if n == 0 else down(n - 1)

    return down


MAKERS = {
    "lambda": spring,
    "nested": lambda k: nested([k, 2.0]),
    "method": lambda k: Model(k).energy,
    "object": Model,
    "frozen": lambda k: Frozen(k).energy,
    "partial": lambda k: functools.partial(np.multiply, k),
    "partial of a method": lambda k: functools.partial(Model(k).energy, 1.0),
    "defaults": with_defaults,
    "recursive": recursive,
    "named tuple": lambda k: spring(Pair(k, 1.0)),
    "dictionary": lambda k: spring({"k": [k, (1, 2)]}),
    "set": lambda k: spring({k, 7}),
    "NumPy": lambda k: spring(np.full(9, k)),
    "JAX": lambda k: spring(jnp.full(9, k)),
    "observable": lambda k: bm.ensembles.Observable("own", lambda system, state, t: k * state.q),
    "wrapped": lambda k: functools.wraps(key_of)(lambda q: k * q),
    "bound built-in": lambda k: [k, 2.0].count,
    "vmapped": lambda k: jax.vmap(spring(k)),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_made_alike_they_are_alike_and_a_changed_number_is_seen(maker):
    assert len({key_of(maker(2.0)) for _ in range(5)}) == 1
    assert not same(maker(2.0), maker(3.0))
    assert key_of(maker(2.0)) in {key_of(maker(2.0)): "program"}


def test_lambdas_of_a_loop_are_one_function_where_the_loop_does_not_matter():
    assert len({key_of(lambda q: q**2) for _ in range(10)}) == 1
    assert len({key_of(lambda q, i=i: i * q) for i in range(10)}) == 10


def test_different_code_is_different():
    assert not same(lambda q: q + 1, lambda q: q - 1)
    assert not same(lambda q: q * 1, lambda q: q * 1.0)


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), ([1], (1,)), (np.float32(1), np.float64(1)), ({1}, frozenset({1}))]
)
def test_what_python_calls_equal_may_compute_differently(one, other):
    assert not same(spring(one), spring(other))


def test_the_type_of_an_array_counts():
    assert not same(spring(np.ones(3)), spring(np.ones(3, np.float32)))
    assert not same(spring(np.ones(4)), spring(np.ones((2, 2))))
    assert not same(spring(np.ones(3)), spring(jnp.ones(3)))
    assert not same(spring(jnp.asarray(2.0)), spring(jnp.asarray(2.0, jnp.float64)))  # one is weakly typed


def test_a_shape_is_the_same_whether_or_not_two_arrays_share_it():
    shape = lambda n: np.zeros((2, n)).shape  # a new tuple each time
    one = shape(3)
    assert same((one, one), (shape(3), shape(3)))
    assert not same((one, one), (one, shape(4)))


def test_a_changed_list_is_a_changed_function():
    values = [1.0, 2.0]
    f = nested(values)
    before = key_of(f)
    values[1] = 3.0
    assert key_of(f) != before
    values[1] = 2.0
    assert key_of(f) == before


def test_an_array_changed_in_place_is_a_changed_function():
    large = np.zeros(2**18)
    f = spring(large)
    before = key_of(f)
    large[5] = 1.0
    assert key_of(f) != before


@pytest.mark.parametrize(
    "f", [uses_a_global, lambda q: 2 * uses_a_global(q), Model(1.0).energy, Model(1.0)], ids=["direct", "through another", "method", "object"]
)
def test_a_changed_global_is_a_changed_function(monkeypatch, f):
    before = key_of(f)
    assert key_of(f) == before
    monkeypatch.setitem(globals(), "STRENGTH", 2.0)
    assert key_of(f) != before


def test_a_value_in_a_module_of_the_user_is_looked_up(monkeypatch):
    inner = types.ModuleType("settings_of_a_user.inner")
    inner.k = 1.0
    monkeypatch.setattr(SETTINGS, "inner", inner, raising=False)
    make = lambda: lambda q: SETTINGS.inner.k * q
    before = key_of(make())
    assert key_of(make()) == before
    inner.k = 2.0
    assert key_of(make()) != before
    assert not same(lambda q: id(SETTINGS), lambda q: id(SETTINGS))  # passed on: nobody knows what will be read


def test_what_cannot_be_looked_into_is_compared_as_python_does():
    for hidden in (io.BytesIO(), (n for n in range(3)), np.random.default_rng(0), np.array([object()])):
        f, g = spring(hidden), spring(hidden)
        assert same(f, f)
        assert not same(f, g)


def test_a_method_of_something_hidden_is_the_same_for_the_same_object():
    hidden = Model(io.BytesIO())
    assert same(hidden.energy, hidden.energy)
    assert not same(hidden.energy, Model(io.BytesIO()).energy)


def test_code_that_looks_up_names_by_text_is_not_guessed():
    make = lambda: lambda q: eval("STRENGTH") * q
    assert not same(make(), make())
    make = lambda: lambda q: globals()["STRENGTH"] * q
    assert not same(make(), make())


def test_classes_made_alike_are_two_classes():
    def make():
        class Own:
            def __call__(self, q):
                return q

        return Own()

    assert not same(make(), make())


def test_circles_end():
    circle = [1.0]
    circle.append(circle)
    other = [1.0]
    other.append(other)
    assert same(spring(circle), spring(other))
    deep = []
    for _ in range(5_000):
        deep = [deep]
    f = spring(deep)
    assert same(f, f)


def test_functions_of_a_library_are_themselves():
    assert same(jnp.sin, jnp.sin)
    assert not same(jnp.sin, jnp.cos)
    assert same(jnp.stack, jnp.stack)
    assert not same(jnp.stack, jnp.concatenate)
    assert same(bm.momentum("vertical"), bm.momentum("vertical"))
    assert not same(bm.momentum("vertical"), bm.momentum("horizontal"))


def test_a_key_keeps_what_it_compares_by_identity():
    keys = [key_of(spring(io.BytesIO())) for _ in range(50)]
    assert len(set(keys)) == 50


def test_schemes_of_systems_made_alike_are_alike():
    def make(k, parameter=1.0):
        mass, parameters = [1.0, 2.0, 2.5], {"weight": parameter}
        potential = lambda R, parameters: k * parameters["weight"] * R[2, 2]
        return bm.Midpoint(bm.mechanical(bm.SO3(), mass=mass, potential=potential, noise=lambda R: jnp.sin(k * R[2:, 0]), parameters=parameters))

    assert same(make(2.0), make(2.0))
    assert not same(make(2.0), make(3.0))
    assert not same(make(2.0), make(2.0, parameter=2.0))


class Slotted:
    __slots__ = ("__dict__", "k")

    def __init__(self, k):
        self.k = k


class Arguments:
    def __new__(cls, k):
        made = super().__new__(cls)
        made.__dict__["made"] = None
        return made

    def __init__(self, k):
        self._k = k

    def __getnewargs__(self):
        return (self._k,)


class Looking:
    def __init__(self, k):
        self.k = k

    def __getattribute__(self, name):
        return object.__getattribute__(self, "k") if name == "stiffness" else object.__getattribute__(self, name)

    def __getattr__(self, name):
        return self.k[name]


class Hiding:
    """Its attributes are there, but not under the name at which Python keeps them."""

    def __init__(self, k):
        object.__setattr__(self, "k", k)

    @property
    def __dict__(self):
        return {}


class Proxy:
    def __init__(self, k):
        object.__setattr__(self, "held", Model(k))

    def __getattribute__(self, name):
        return getattr(object.__getattribute__(self, "held"), name)


class WithoutHash(type):
    __hash__ = None

    def __eq__(cls, other):
        return cls is other


class Odd(metaclass=WithoutHash):
    pass


class Counting(list):
    pass


@pytest.mark.parametrize("kind", [Model, Slotted, Arguments, Looking, Hiding])
def test_an_object_is_all_that_it_holds(kind):
    """Attributes, slots, and what it is made from."""
    assert same(spring(kind(2.0)), spring(kind(2.0)))
    assert not same(spring(kind(2.0)), spring(kind(3.0)))


def test_an_object_that_is_also_a_list_is_itself():
    one = spring(Counting([1.0]))
    assert same(one, one)
    assert not same(one, spring(Counting([1.0])))


@pytest.mark.parametrize("made", [lambda: Proxy(2.0), Odd])
def test_what_cannot_be_looked_into_is_itself(made):
    one = spring(made())
    assert same(one, one)
    assert not same(one, spring(made()))


def test_a_name_is_no_number():
    assert not same(spring({"1": 2.0}), spring({1: 2.0}))


def test_a_key_does_not_keep_a_tracer():
    """What is remembered under a function that holds one cannot be asked for when its trace is over."""
    kept = []

    def remembers(x):
        kept.append(key_of(spring(x)))
        assert kept[-1] == key_of(spring(x))
        return x

    with jax.checking_leaks():
        jax.jit(remembers)(1.0)
    assert len(kept) == 1
