"""Tables of a run file: what may stand where, and all mistakes at once.

    expected    a Rule for a value, a Table, NamedValues, OneOf, a Quantity, or Registered: a table by the signature of what it names
    check       expected, path, value  ↦  mistakes, each with the path to what is wrong

Rules of our own, not pydantic or msgspec: a table follows the signature of what it names, and all mistakes are collected, each with its line and a
remedy. This module imports neither JAX nor NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, NamedTuple

from bismut.arguments import TABLE, Rule, is_integer, is_number
from bismut.cli.runs.toml import Lines, Path_, line_of
from bismut.errors import BismutError, nearest
from bismut.registry import Registry

_NAME = re.compile(r"\w[\w-]*")
_SHOWN = 120  # characters of a value that a message quotes


class Mistake(NamedTuple):
    """Where something is wrong, and what was expected, what was given, what to do."""

    path: Path_
    text: str


class Mistakes(BismutError):
    """Everything that is wrong with a run, in the order of its lines."""

    def __init__(self, mistakes: Iterable[Mistake], lines: Lines, source: str = ""):
        placed = [(line_of(lines, mistake.path), mistake) for mistake in mistakes]
        self.placed = sorted(placed, key=lambda pair: (pair[0] or 0, pair[1].path))
        count = len(self.placed)
        head = f"{source or 'This run'} has {count} mistake{'' if count == 1 else 's'}:"
        listed = (f"  {f'line {line}: ' if line else ''}{'.'.join(mistake.path)}: {mistake.text}" for line, mistake in self.placed)
        super().__init__("\n".join([head, *listed]))


# What may stand somewhere: a Rule for a value, or one of these. `check` gives what is wrong with a value.


class Table(NamedTuple):
    """A table with known keys, some of which are required."""

    keys: Mapping[str, Any]
    required: tuple[str, ...] = ()
    expected = "a table"

    def check(self, path: Path_, value: Any) -> list[Mistake]:
        if not isinstance(value, Mapping):
            return [Mistake(path, f"expected a table with {', '.join(self.keys)}, got {shown(value)}.")]
        unknown = [Mistake((*path, key), f"there is no such key. {nearest(key, self.keys)}") for key in value if key not in self.keys]
        missing = [Mistake((*path, key), f"missing: {self.keys[key].expected} is required here.") for key in self.required if key not in value]
        return unknown + missing + [m for key, part in value.items() if key in self.keys for m in check(self.keys[key], (*path, key), part)]


class NamedValues(NamedTuple):
    """A table whose keys are names that the user chose: letters, digits, _ and -, because results and pictures are filed under them."""

    each: Any = None
    expected = "a table"

    def check(self, path: Path_, value: Any) -> list[Mistake]:
        if not isinstance(value, Mapping):
            return [Mistake(path, f"expected a table, got {shown(value)}.")]
        wrong = [Mistake((*path, key), "expected a name of letters, digits, _ and -.") for key in value if not _NAME.fullmatch(key)]
        return wrong + ([] if self.each is None else [m for key, part in value.items() for m in check(self.each, (*path, key), part)])


class OneOf(NamedTuple):
    """One of several names, which are asked for when they are needed."""

    names: Callable[[], Iterable[str]]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.names())}"

    def check(self, path: Path_, value: Any) -> list[Mistake]:
        if isinstance(value, str) and value in self.names():
            return []
        return [Mistake(path, f"expected {self.expected}, got {shown(value)}. {nearest(str(value), self.names())}")]


class Quantity(NamedTuple):
    """The name of something to measure, a table that says which part of it, or a list of them: of one function their numbers in one array, of two one
    for each. Which names there are depends on the system, and is checked later."""

    functions: int = 1
    expected = "a quantity such as energy"

    def check(self, path: Path_, value: Any) -> list[Mistake]:
        several = value if isinstance(value, list) else [value]
        if not several or 1 < self.functions < len(several):
            return [Mistake(path, f"expected one to {self.functions} quantities, got {len(several)}.")]
        return [m for part in several if not isinstance(part, str) for m in _QUANTITY.check(path, part)]


class Registered(NamedTuple):
    """A table that names something registered and gives its arguments.

    given    arguments that come from elsewhere in the run
    adapted  changes to the table of some names, where a file says it differently from Python
    keys     that are options of the command line
    """

    registry: Registry[Any]
    key: str = "name"
    default: str | None = None
    given: tuple[str, ...] = ()
    adapted: Mapping[str, Callable[[Table], Table]] = MappingProxyType({})
    keys: Mapping[str, Any] = MappingProxyType({})
    expected = "a table"

    def names(self) -> list[str]:
        return [*([self.default] if self.default else []), *self.registry.names()]

    def check(self, path: Path_, value: Any) -> list[Mistake]:
        if not isinstance(value, Mapping) or (self.key not in value and self.default is None):
            return Table({self.key: WORD}, (self.key,)).check(path, value)
        name = value.get(self.key, self.default)
        if wrong := OneOf(self.names).check((*path, self.key), name):
            return wrong
        try:
            return self.table(name).check(path, value)
        except BismutError as problem:  # a package that cannot be imported
            return [Mistake((*path, self.key), str(problem))]

    def table(self, name: str) -> Table:
        """The keys of one of them: its arguments, each by its rule."""
        if name == self.default:
            return Table({self.key: WORD, "of": Quantity()}, ("of",))
        parameters = {key: one for key, one in parameters_of(self.registry[name]).items() if key not in self.given}
        keys = {key: Quantity(rule.functions) if rule.functions else rule for key, rule in rules_of(self.registry[name]).items() if key in parameters}
        table = Table({self.key: WORD, **keys}, tuple(key for key, one in parameters.items() if one.default is Parameter.empty))
        return self.adapted.get(name, lambda same: same)(table)


class Key(NamedTuple):
    """A key of a run that is also an option.

    rule     what it may be in a run file
    typed    how the option is typed: number, whole, word, numbers, flag, folder, assignments (name=value, repeated), list (repeated)
    help     {schemes} stands for the names of what is registered
    option   the name of the option, if it is not that of the key
    example  of an assignment
    """

    rule: Any
    typed: str
    metavar: str
    help: str
    option: str = ""
    example: str = ""

    @property
    def expected(self) -> str:
        return self.rule.expected


def check(expected: Any, path: Path_, value: Any) -> list[Mistake]:
    """What is wrong with a value."""
    if isinstance(expected, Key):
        return check(expected.rule, path, value)
    if isinstance(expected, Rule):
        return [] if expected.holds(value) else [Mistake(path, f"expected {expected.expected}, got {shown(value)}.")]
    return expected.check(path, value)


def shown(value: Any) -> str:
    """A value as it would stand in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} ... {text[-8:]}"


# Rules of what is registered.


def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters that can be given by name."""
    return {name: one for name, one in signature(function).parameters.items() if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}


def rules_of(function: Callable[..., Any]) -> dict[str, Rule]:
    """A rule for each argument: that of `@checked`, else by its name in the table of arguments, else by its default or its type."""
    own = getattr(function, "rules", {})
    return {name: own.get(name) or TABLE.get(name) or by_default(one) for name, one in parameters_of(function).items()}


def by_default(parameter: Parameter) -> Rule:
    """What fits a parameter, judged by its default or its type; anything, where neither says."""
    default, kind = parameter.default, parameter.annotation
    if isinstance(default, tuple | list):
        return Rule(f"a list of {len(default)} numbers", lambda value: is_list_of(value, is_number) and len(value) == len(default))
    for type_, rule in ((bool, FLAG), (int, WHOLE), (float, NUMBER), (str, WORD)):  # bool first: it is an int, too
        if isinstance(default, type_) or (default is Parameter.empty and kind in (type_, type_.__name__)):
            return rule
    return Rule("a value", lambda value: True)


def is_list_of(value: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(test, value))


def at_least(least: int) -> Rule:
    return Rule(f"a whole number ≥ {least}", lambda value: is_integer(value) and least <= value < 2**64)


WORD = Rule("a word in quotation marks", lambda value: isinstance(value, str) and bool(value))
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
NUMBER = Rule("a number", is_number)
WHOLE = Rule("a whole number", lambda value: is_integer(value) and abs(value) < 2**64)
_INDEX = at_least(0)
_QUANTITY = Table(
    {
        "name": WORD,
        "symmetry": WORD,
        "part": _INDEX,
        "component": Rule("an index ≥ 0 or a list of them", lambda value: _INDEX.holds(value) or is_list_of(value, _INDEX.holds)),
        "axis": Rule("three numbers", lambda value: is_list_of(value, is_number) and len(value) == 3),
    },
    ("name",),
)
