"""What an argument must be: rules for the arguments of public functions, which are those of run files and of options as well.

    @checked()                     every parameter by its name in the table
    @checked(of=numbers_of_runs)   one of them by another rule

A rule says what is expected and tests a value; an error is one sentence that names the argument, what was expected, what it got, and what to do. The
default is always accepted. Numbers that JAX traces are not known yet, and are accepted.

Neither NumPy nor JAX is imported with this module, because `bismut --help` reads it.
"""

from __future__ import annotations

import inspect
import math
import numbers
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import SimpleNamespace
from typing import Any, NamedTuple, ParamSpec, TypeVar

from bismut.errors import DomainError, nearest

P = ParamSpec("P")
R = TypeVar("R")

MODES = ("auto", "native", "xla")
MOTIONS = ("velocity", "momentum", "temperature")  # of which a start has one
ARITHMETICS = ("fused", "plain")  # whether a·b + c is rounded once, or twice
_LONGEST = 240  # bytes of a file's name: disks take 255, and what is written beside it has a longer one
_SHOWN = 80  # characters of a wrong value


class Rule(NamedTuple):
    """What a value must be, as text and as a test, and what to do if it is not.

    counts     whether a whole number in an array of NumPy or JAX is passed on as one of Python
    functions  how many functions of a state it may be; a run file names quantities there
    """

    expected: str
    holds: Callable[[Any], bool]
    remedy: str = ""
    counts: bool = False
    functions: int = 0

    def check(self, value: Any, name: str) -> None:
        if not self.holds(value):
            raise DomainError(f"{name} must be {self.expected}, got {shown(value)}.{' ' + self.remedy if self.remedy else ''}")

    def but(self, remedy: str) -> Rule:
        return self._replace(remedy=remedy)


def shown(value: Any) -> str:
    """A wrong value in an error: its repr, shortened if it is long; classes by their names."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({type(value).__name__})"


def _is_instance(value: Any, module: str, kind: str) -> bool:
    """isinstance(value, module.kind) for a module that is not imported here; if nothing imported it, nothing is an instance."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, kind))


def is_traced(value: Any) -> bool:
    return _is_instance(value, "jax.core", "Tracer")


def _is_list(value: Any) -> bool:
    return _is_instance(value, "numpy", "ndarray") or (isinstance(value, Sequence) and not isinstance(value, str | bytes))


def is_number(value: Any) -> bool:
    """One finite real number, of Python, NumPy or JAX; no truth value and no text."""
    if isinstance(value, bool | str | bytes):
        return False
    if isinstance(value, numbers.Real):
        try:
            return math.isfinite(value)
        except OverflowError:  # an integer beyond all floating-point numbers
            return False
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return False
    import numpy as np

    # A key of JAX has no type of NumPy's, nor a value.
    return np.shape(value) == () and getattr(value.dtype, "kind", "-") in "iuf" and bool(np.isfinite(np.asarray(value)))


def float_array(value: Any, name: str) -> Any:
    """The user's numbers as an array of NumPy, or an error that names the argument."""
    import numpy as np

    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise DomainError(f"{name} must be numbers, got {shown(value)}.") from None


def is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_index(value: Any, below: int = 2**63) -> bool:
    """A whole number ≥ 0, also a traced one or one in an array without axes."""
    return is_traced(value) or (_is_count(value) and 0 <= int(value) < below)


def _is_count(value: Any) -> bool:
    """A whole number of Python, or one in an array of NumPy or JAX without axes."""
    return is_integer(value) or (not is_traced(value) and hasattr(value, "dtype") and is_number(value) and value.dtype.kind in "iu")


def integer(least: int = 1, below: int = 2**63) -> Rule:
    expected = f"a whole number ≥ {least}" + ("" if below == 2**63 else f" and < {below}")
    return Rule(expected, lambda value: _is_count(value) and least <= int(value) < below, counts=True)


def number(expected: str, test: Callable[[Any], bool] = lambda value: True, remedy: str = "") -> Rule:
    return Rule(expected, lambda value: is_traced(value) or (is_number(value) and bool(test(value))), remedy)


POSITIVE = Rule("a positive number", lambda value: is_number(value) and value > 0)


def one_of(*choices: Any) -> Rule:
    names = [f'"{word}"' if isinstance(word, str) else str(word).replace("-", "−") for word in choices]
    known = lambda value: (isinstance(value, str) or is_integer(value)) and value in choices
    return Rule(f"{', '.join(names[:-1])} or {names[-1]}", known)


def sequence(expected: str, each: Callable[[Any], bool], remedy: str = "") -> Rule:
    """One or more values in a list, a tuple or an array of one axis."""
    return Rule(expected, lambda value: _is_list(value) and getattr(value, "ndim", 1) == 1 and len(value) > 0 and all(map(each, value)), remedy)


def table_of(names: str, example: str, test: Callable[[Any], bool] = lambda value: True) -> Rule:
    return Rule(
        f"a dictionary such as {{{example}}}, {names}",
        lambda value: isinstance(value, Mapping) and all(isinstance(name, str) and test(one) for name, one in value.items()),
    )


def _is_folder(value: Any) -> bool:
    if not isinstance(value, str | os.PathLike) or not (name := os.fspath(value)) or isinstance(name, bytes):
        return False
    return "\0" not in name and all(len(os.fsencode(part)) <= _LONGEST for part in name.split(os.sep))


def _is_pair(value: Any, each: Callable[[Any], bool]) -> bool:
    return _is_list(value) and getattr(value, "ndim", 1) > 0 and len(value) == 2 and all(map(each, value))


def _is_range(value: Any) -> bool:
    return _is_pair(value, is_number) and bool(value[0] < value[1])


def _is_bins(value: Any) -> bool:
    return is_integer(value) and 1 <= value < 2**31


def _is_flag(value: Any) -> bool:
    return (isinstance(value, bool | int) or _is_instance(value, "numpy", "bool_")) and value in (False, True)


flag = Rule("True or False", _is_flag)
function = Rule("a function of a State, such as bm.energy or lambda state: state.q[0]", callable, functions=1)
file = Rule("the name of a file or a folder", _is_folder, f"Each part of it has at most {_LONGEST} bytes.")
folder = Rule("the name of a folder", _is_folder, f"Each part of it has at most {_LONGEST} bytes.")
positive = number("a positive number", lambda value: value > 0)
text = Rule("a name", lambda value: isinstance(value, str) and bool(value))
counted = integer(1, 2**30)

TABLE: dict[str, Rule] = {
    # of a run
    "step": number("one positive number", lambda h: h > 0, "A scheme is run backwards with its adjoint, not with a negative step."),
    "steps": counted.but("Longer runs go on with simulate(scheme, continue_from=result, steps=...)."),
    "trajectories": integer(),
    "seed": Rule("a whole number from 0 to 2⁶⁴ − 1", lambda seed: is_index(seed, 2**64)),
    "sweep": table_of("names of parameters and lists of their values", '"k": [1.0, 2.0]'),
    "every": integer(),
    "burn_in": integer(0, 2**30),
    "until": table_of("names of what is observed and positive standard errors", '"energy": 0.01', lambda error: is_number(error) and error > 0),
    "t0": number("one finite number, the time at the start"),
    "on_failure": one_of("exclude", "raise"),
    "block": integer(),
    "mode": one_of(*MODES),
    "arithmetic": one_of(*ARITHMETICS),
    "devices": integer(),
    "first_trajectory": integer(0),
    "max_time": number("a positive number of seconds", lambda seconds: seconds > 0),
    "over": one_of("end", "time"),
    "store": folder,
    "overwrite": flag,
    "keep_final": flag,
    "extend": flag,
    "force": flag,
    "certify": flag,
    "dry_run": flag,
    "progress": flag.but("None shows a bar on a terminal."),
    # of a report
    "order": flag,
    "equilibrium": flag,
    "integrity": flag,
    "temperature": number("a positive number, kT", lambda kT: kT > 0),
    "tolerance": positive,
    "budget": Rule('seconds such as 30, or "30s", "2m", "1h"', lambda budget: isinstance(budget, str) or (is_number(budget) and budget >= 0)),
    "alarm": number("a probability between 0 and 1", lambda p: 0 < p < 1),
    "observables": table_of("names and functions of a State", '"x": lambda state: state.q[0]', callable),
    # of an observer
    "of": function,
    "at": function,
    "range": Rule(
        "(low, high) with low < high; of two functions one such pair for each", lambda value: _is_range(value) or _is_pair(value, _is_range)
    ),
    "bins": Rule(
        "a whole number ≥ 1, or one for each of two functions",
        lambda bins: _is_bins(bins) or sequence("", _is_bins).holds(bins),
    ),
    "levels": sequence("a list of numbers between 0 and 1, such as (0.05, 0.5, 0.95)", lambda p: is_number(p) and 0 <= p <= 1),
    "lags": counted,
    "about": number("one finite number, near the mean"),
    "direction": one_of(-1, 0, 1),
    "capacity": counted,
    "per": one_of("body", "component"),
    # of a scheme
    "retraction": one_of("cayley", "exp"),
    "end": one_of("left", "right"),
    "name": text,
}


def checked(**own: Rule) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: arguments are checked before the function is called; `rules` of the result are by parameter."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        rules = {name: own.get(name, TABLE.get(name)) for name in parameters}
        names = [name for name, parameter in parameters.items() if parameter.kind is not parameter.KEYWORD_ONLY]

        def check_all(args: tuple, kwargs: Mapping[str, Any]) -> dict[str, Any]:
            """Check all arguments; those that are passed on as another value, by name."""
            counts: dict[str, Any] = {}
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                if name not in parameters:
                    raise TypeError(f"{function.__name__} has no argument {name!r}. {nearest(name, parameters)}")
                rule = rules[name]
                if rule is not None and value is not parameters[name].default:
                    rule.check(value, name)
                    if rule.counts and not is_integer(value):
                        counts[name] = int(value)
            return counts

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if counts := check_all(args, kwargs):
                call_with: Any = function
                return call_with(*(counts.pop(name, value) for name, value in zip(names, args, strict=False)), **{**kwargs, **counts})
            return function(*args, **kwargs)

        vars(call)["check_all"] = check_all
        vars(call)["rules"] = rules
        return call

    return decorate


def arguments_of(function: Callable, *args: Any, **kwargs: Any) -> SimpleNamespace:
    """What a checked function would be called with: its arguments by name, checked as there, defaults included."""
    counts = vars(function)["check_all"](args, kwargs)
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return SimpleNamespace(**bound.arguments | counts)
