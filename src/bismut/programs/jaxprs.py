"""The one file that turns jaxprs into programs: from a function to a `Program`.

JAX changes what a jaxpr consists of with every release (`jax.extend` promises nothing), so all of it is met here: primitives of calls and their
parameters, the counts of a scan, which are read off shapes, and operations that JAX keeps high, as calls of something with rules of its own, until
they are lowered (`to_lojax`, from 0.11 on). What cannot be expressed is `Refused`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer
from jax.extend import core
from jax.interpreters.partial_eval import dce_jaxpr

from bismut.programs.program import CALL, LOOPS, Atom, Aval, Equation, Literal, Loop, Primitive, Program, Refused, Var
from bismut.programs.pruning import pruned

_CALLS = ("jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "remat", "checkpoint", "remat2")
_CUSTOM = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
_SOLVES = ("linear_solve", "custom_linear_solve")
_CONTROL = ("while", "cond", "scan", *LOOPS)
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_WITHOUT_GRADIENT = ("while", "pure_callback", "io_callback")
_call = Primitive(CALL)


class TracedFunction(NamedTuple):
    """A function with flat lists in and out, and the structure of its result."""

    program: Program
    structure: Any
    shapes: list  # of the results


def trace(function: Callable, *arguments: Any) -> TracedFunction:
    """The program of a function of trees of arrays or of their shapes, without what does not lead to its results."""
    closed, out = jax.make_jaxpr(function, return_shape=True)(*arguments)
    leaves, structure = jax.tree.flatten(out)
    # Of a derivative the value itself is often not wanted, and a loop over pairs that is never read is no small thing.
    return TracedFunction(pruned(_Reader().program(closed)), structure, leaves)


def closed_over(program: Program) -> bool:
    """Whether a program has a constant that JAX traces."""
    return any(isinstance(value, Tracer) for value in program.consts)


def separated(function: Callable, *arguments: Any) -> tuple[Callable, list]:
    """(pure, values): function(*arguments) = pure(values, *arguments) for flat arrays, where values are all that JAX traces and the function closes
    over. A function with derivatives of its own has to name what it depends on."""
    closed, out = jax.make_jaxpr(function, return_shape=True)(*arguments)
    structure = jax.tree.structure(out)
    hoisted, values = hoist(closed)
    evaluated = core.jaxpr_as_fun(hoisted)
    return lambda values, *given: structure.unflatten(evaluated(*values, *given)), values


def custom_gradients(function: Callable, *arguments: Any) -> list[str]:
    """The names of the functions with a jax.custom_vjp that a function calls: they have a gradient, and no derivative along a direction."""
    return list(dict.fromkeys(_custom_gradients(jax.make_jaxpr(function)(*arguments))))


def _custom_gradients(jaxpr: Any) -> Iterator[str]:
    for equation in _equations(jaxpr):
        if equation.primitive.name in _CUSTOM[1:]:
            inside = next(equation.params[key] for key in _INNER if key in equation.params)
            yield getattr(getattr(inside, "jaxpr", inside).debug_info, "func_name", "a function")


def may_lack_gradient(function: Callable, *arguments: Any) -> bool:
    """Whether a function loops until something holds, or calls Python: then it may have no gradient, which is seen by taking it."""
    return any(equation.primitive.name in _WITHOUT_GRADIENT for equation in _equations(jax.make_jaxpr(function)(*arguments)))


def _equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a jaxpr, those inside others too."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                if isinstance(part, core.ClosedJaxpr | core.Jaxpr):
                    yield from _equations(part)


def as_function(jaxpr: Any, consts: Sequence = ()) -> Callable[..., list]:
    """A jaxpr among the parameters that JAX has for an equation (`source`), as a function of flat arrays."""
    closed = getattr(jaxpr, "consts", None) is not None and not consts  # from 0.11 on, all are
    return core.jaxpr_as_fun(jaxpr if closed else core.ClosedJaxpr(jaxpr, consts))


def hoist(closed: Any) -> tuple[Any, list]:
    """Traced constants of a jaxpr as its first arguments, without what does not lead to its results."""
    traced = [isinstance(value, Tracer) for value in closed.consts]
    jaxpr = closed.jaxpr
    part = lambda values, wanted: [value for value, mark in zip(values, traced, strict=True) if mark is wanted]
    # The names of arguments no longer fit, and are not read.
    names = jaxpr.debug_info.with_unknown_names()
    new = jaxpr.replace(constvars=part(jaxpr.constvars, False), invars=[*part(jaxpr.constvars, True), *jaxpr.invars], debug_info=names)
    new, _ = dce_jaxpr(new, [True] * len(new.outvars), instantiate=True)  # of a derivative the value itself is not wanted
    return core.ClosedJaxpr(new, part(closed.consts, False)), part(closed.consts, True)


def bind(equation: Equation, inputs: Sequence) -> list:
    """The outputs of an equation as JAX computes them."""
    out = equation.primitive.bind(*inputs, **equation.source)
    return list(out) if equation.primitive.multiple_results else [out]


def expansion(equation: Equation) -> Program:
    """A loop over bodies or pairs as operations on arrays; in a loop over steps it is met again and again."""
    return _expansion(equation.primitive, equation.source)


@lru_cache(maxsize=64)
def _expansion(primitive: Any, loop: Loop) -> Program:
    kinds = [jax.ShapeDtypeStruct(*kind) for kind in loop.kinds]

    def function(*operands: Any) -> list:
        return list(compress(primitive.impl(*operands, jaxpr=loop.jaxpr, layout=loop.layout), loop.used))

    # An unread input is traced, too, since JAX would compile each operation with a known number, and is a zero afterwards: it leads nowhere.
    whole = trace(function, *kinds).program
    unread = [not mark for mark in loop.reads]
    zeros = [np.zeros(kind.shape, kind.dtype) for kind in compress(kinds, unread)]
    invars, constvars = list(compress(whole.invars, loop.reads)), [*whole.constvars, *compress(whole.invars, unread)]
    return Program(invars, whole.outvars, whole.eqns, constvars, [*whole.consts, *zeros])


class _Reader:
    """One reading; a jaxpr that occurs twice is one program."""

    def __init__(self) -> None:
        self._programs: dict[int, tuple[Any, Program]] = {}  # with the jaxpr, so that its number stays its own
        self._avals: dict[Any, Aval] = {}

    def program(self, closed: Any, consts: Sequence = ()) -> Program:
        jaxpr = getattr(closed, "jaxpr", closed)
        key = id(closed)
        if key not in self._programs:
            env: dict[Any, Atom] = {}
            constvars, invars = [self._var(env, v) for v in jaxpr.constvars], [self._var(env, v) for v in jaxpr.invars]
            eqns = [new for equation in jaxpr.eqns for new in self._equation(env, equation)]
            outvars = [self._atom(env, v) for v in jaxpr.outvars]
            self._programs[key] = closed, Program(invars, outvars, eqns, constvars, getattr(closed, "consts", None) or consts)
        return self._programs[key][1]

    def _aval(self, aval: Any) -> Aval:
        if aval not in self._avals:
            if not hasattr(aval, "shape") or not hasattr(aval, "dtype") or hasattr(aval, "inner_aval"):  # the last are references, which change
                raise Refused(f"values of the type {aval}")
            self._avals[aval] = Aval(tuple(aval.shape), aval.dtype)
        return self._avals[aval]

    def _var(self, env: dict, v: Any) -> Var:
        env[v] = new = Var(self._aval(v.aval))
        return new

    def _atom(self, env: dict, v: Any) -> Atom:
        return Literal(v.val, self._aval(v.aval)) if isinstance(v, core.Literal) else env[v]

    def _equation(self, env: dict, equation: Any) -> list[Equation]:
        """One equation; none where the result is known."""
        primitive, params, effects = equation.primitive, equation.params, bool(equation.effects)
        name = primitive.name
        if name == "platform_index":
            env[equation.outvars[0]] = Literal(np.int32(_on_processors(params["platforms"])), self._aval(equation.outvars[0].aval))
            return []
        invars = [self._atom(env, v) for v in equation.invars]
        consts = params.get("update_consts", ())  # of the function that a scatter applies
        own = {key: self._own(value, consts) for key, value in params.items()}
        if name in _CALLS or name in _CUSTOM:
            own = {"jaxpr": next(own[key] for key in _INNER if key in own), "name": params.get("name", name), "custom": name in _CUSTOM}
            primitive = _call
        elif name in _SOLVES:
            lengths = params["const_lengths"]
            first = lengths.matvec + lengths.vecmat
            invars = [*invars[first : first + lengths.solve], *invars[sum(lengths) :]]
            own, primitive = {"jaxpr": self.program(params["jaxprs"].solve), "name": name, "custom": True}, _call
        elif name == "scan":
            own |= _counts(equation)
        elif name not in _CONTROL and _is_high(equation):
            own, primitive = {"jaxpr": self.program(_lowered(equation)), "name": name, "custom": True}, _call
        outvars = [self._var(env, v) for v in equation.outvars]
        source = _loop_of(equation) if name in LOOPS else params
        return [Equation(primitive, invars, outvars, own, effects, source)]

    def _own(self, value: Any, consts: Sequence) -> Any:
        """A parameter, with programs in place of jaxprs."""
        if isinstance(value, core.ClosedJaxpr | core.Jaxpr):
            return self.program(value, consts)
        if type(value) in (tuple, list) and any(isinstance(part, core.ClosedJaxpr | core.Jaxpr) for part in value):
            return tuple(self._own(part, consts) for part in value)
        return value


def _loop_of(equation: Any) -> Loop:
    kinds = tuple((v.aval.shape, v.aval.dtype) for v in equation.invars)
    return Loop(equation.params["jaxpr"], equation.params["layout"], kinds, (True,) * len(kinds), (True,) * len(equation.outvars))


def _on_processors(platforms: Any) -> int:
    """Which of several forms of a function is the one for processors: one that names them, or the one for all others, None."""
    return next((k for k, names in enumerate(platforms) if names is not None and "cpu" in names), platforms.index(None) if None in platforms else 0)


def _counts(equation: Any) -> dict[str, int]:
    """How many operands of a scan are constants and how many are carried: rows have one axis more outside than inside."""
    inside = getattr(equation.params["jaxpr"], "jaxpr", equation.params["jaxpr"])
    entire = lambda outer, inner: [len(a.aval.shape) == len(b.aval.shape) for a, b in zip(outer, inner, strict=True)]
    given, returned = entire(equation.invars, inside.invars), entire(equation.outvars, inside.outvars)
    carry = sum(returned)
    if given != sorted(given, reverse=True) or returned != sorted(returned, reverse=True):
        raise Refused("scan whose rows do not come last")
    return {"num_consts": sum(given) - carry, "num_carry": carry}


def _is_high(equation: Any) -> bool:
    """Whether JAX would lower it before compiling; there is no such thing before 0.11."""
    asked = getattr(equation.primitive, "is_high", None)
    return asked is not None and bool(asked(*(v.aval for v in equation.invars), **equation.params))


def _lowered(equation: Any) -> Any:
    """What an operation that is high stands for; it may hold others that are."""
    kinds = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype, weak_type=getattr(v.aval, "weak_type", False)) for v in equation.invars]
    try:
        return jax.make_jaxpr(lambda *x: equation.primitive.to_lojax(*x, **equation.params))(*kinds)
    except Exception as problem:  # how an operation is lowered is its own business, and so is what goes wrong in it
        raise Refused(f"{equation.primitive.name}, which cannot be lowered ({type(problem).__name__}: {problem})") from problem
