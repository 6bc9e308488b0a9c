"""What a run file may say: every key, what is wanted there, and all mistakes at once.

    step, steps, trajectories, seed, every, burn_in, t0, block          numbers of the run
    [system] name, [system.parameters]                                  a system of the gallery
    [scheme] name, retraction, end                                      how it steps; the gallery's choice without it
    [bath]   temperature, friction or rate, splitting, own_noise        Langevin dynamics instead of the bare scheme
    [path]   name, and what it takes                                    what drives, instead of white noise
    [start]  q, one of velocity, momentum and temperature, project      where it begins; what is left out is the gallery's choice
             or file and frame instead of q                             a state that another program wrote
    [sweep]  parameters and their values                                extra axes of everything that is found
    [observe.NAME] kind, of, ...                                        what is looked at
    [until]  observers and standard errors                              trajectories are added until these are reached
    [output] folder, overwrite, final                                   where it goes

Nothing in a run file is code, and nothing in it is a place where code could be found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from bismut.cli.runs.toml import Lines, Path_, line_of
from bismut.errors import BismutError, nearest

ACTIONS = ("VariationalEuler", "Midpoint", "Verlet")
SCHEMES = (
    *ACTIONS,
    "HamiltonianEuler",
    "HamiltonianMidpoint",
    "HamiltonianVerlet",
    "SphericalMidpoint",
    "EulerMaruyama",
    "ImplicitEulerMaruyama",
    "RungeKutta4",
)
SPLITTINGS = ("BAOAB", "ABOBA", "OBABO", "GLA", "Metropolised")
OVER_ACTIONS = SPLITTINGS[3:]  # which take a scheme as the action between baths
OF_SYSTEM = ("energy", "kinetic_energy", "potential_energy", "temperature", "heat", "work", "integrator_error", "acceptance")  # quantities
OF_STATE = ("q", "p", "orientation")
PLAIN_KINDS = ("time_average", "extremes", "quantiles", "autocorrelation")  # observers that need no more than a quantity
MOTIONS = ("velocity", "momentum", "temperature")  # of which a start has one
_NAME = re.compile(r"\w[\w-]*")
BOOKED = ("heat", "work", "integrator_error", "acceptance")  # read from a ledger, so the start must have one


_SHOWN = 120  # characters of a value that a message quotes
_DEEPEST = 16  # lists within lists; a point of many bodies has four


class Mistake(NamedTuple):
    """Where something is wrong, and what was expected, what was given, what to do."""

    path: Path_
    text: str


class Mistakes(BismutError):
    """Everything that is wrong with a run, in the order of its lines."""

    def __init__(self, found: Iterable[Mistake], lines: Lines, source: str = ""):
        placed = [(line_of(lines, mistake.path), mistake) for mistake in found]
        self.found = sorted(placed, key=lambda pair: (pair[0] or 0, pair[1].path))
        count = len(self.found)
        head = f"{source or 'This run'} has {count} mistake{'' if count == 1 else 's'}:"
        super().__init__("\n".join([head, *(self._told(line, mistake) for line, mistake in self.found)]))

    @staticmethod
    def _told(line: int | None, mistake: Mistake) -> str:
        where = ".".join(mistake.path)
        return f"  line {line}: {where}: {mistake.text}" if line else f"  {where}: {mistake.text}"


class Wanted(NamedTuple):
    """What is wanted of a value: in words, and as a test."""

    words: str
    holds: Callable[[Any], bool]

    def mistakes(self, path: Path_, value: Any) -> list[Mistake]:
        return [] if self.holds(value) else [Mistake(path, f"expected {self.words}, got {shown(value)}.")]


class Choice(NamedTuple):
    """One of several words."""

    words: tuple[str, ...]

    def mistakes(self, path: Path_, value: Any) -> list[Mistake]:
        if value in self.words:
            return []
        return [Mistake(path, f"expected one of {', '.join(self.words)}, got {shown(value)}. {nearest(str(value), self.words)}")]


class Table(NamedTuple):
    """A table with known keys, some of which must be there."""

    keys: Mapping[str, Any]
    needed: tuple[str, ...] = ()

    def mistakes(self, path: Path_, value: Any) -> list[Mistake]:
        if not isinstance(value, Mapping):
            return [Mistake(path, f"expected a table with {', '.join(self.keys)}, got {shown(value)}.")]
        found = [Mistake((*path, key), f"there is no such key. {nearest(key, self.keys)}") for key in value if key not in self.keys]
        found += [Mistake((*path, key), f"missing: {_words(self.keys[key])} is wanted here.") for key in self.needed if key not in value]
        return found + [m for key, part in value.items() if key in self.keys for m in self.keys[key].mistakes((*path, key), part)]


class Free(NamedTuple):
    """A table whose keys are names that somebody chose: letters, digits, _ and -, because results and pictures are filed under them."""

    each: Any = None

    def mistakes(self, path: Path_, value: Any) -> list[Mistake]:
        if not isinstance(value, Mapping):
            return [Mistake(path, f"expected a table, got {shown(value)}.")]
        found = [Mistake((*path, key), "expected a name of letters, digits, _ and -.") for key in value if not _NAME.fullmatch(key)]
        return found + ([] if self.each is None else [m for key, part in value.items() for m in self.each.mistakes((*path, key), part)])


class Quantity(NamedTuple):
    """The name of something to measure, or a table that says which part of it. Which names there are depends on the system, and is seen later."""

    def mistakes(self, path: Path_, value: Any) -> list[Mistake]:
        return [] if isinstance(value, str) else _QUANTITY.mistakes(path, value)


class Quantities(NamedTuple):
    """A quantity, or a list of them."""

    most: int | None = None

    def mistakes(self, path: Path_, value: Any) -> list[Mistake]:
        several = value if isinstance(value, list) else [value]
        if not several or (self.most is not None and len(several) > self.most):
            return [Mistake(path, f"expected one to {self.most or 'many'} quantities, got {len(several)}.")]
        return [m for part in several for m in Quantity().mistakes(path, part)]


class Driven(NamedTuple):
    """A table with the name of a path, and the keys of that path."""

    def mistakes(self, path: Path_, value: Any) -> list[Mistake]:
        if not isinstance(value, Mapping) or "name" not in value:
            return Table({"name": _WORD}, ("name",)).mistakes(path, value)
        wrong = Choice(tuple(PATHS)).mistakes((*path, "name"), value["name"])
        found = wrong or PATHS[value["name"]].mistakes(path, value)
        if not found and value["name"] == "Recorded" and ("file" in value) == ("increments" in value):
            found.append(Mistake(path, "expected one of file and increments: where the record is, or its numbers."))
        return found


class Observer(NamedTuple):
    """A table with `kind`, and the keys of that kind."""

    def mistakes(self, path: Path_, value: Any) -> list[Mistake]:
        if not isinstance(value, Mapping):
            return [Mistake(path, f'expected a table such as {{ of = "energy" }}, got {shown(value)}.')]
        kind = value.get("kind", "mean")
        wrong = Choice(tuple(KINDS)).mistakes((*path, "kind"), kind)
        return wrong or KINDS[kind].mistakes(path, value)


def mistakes(document: Mapping[str, Any]) -> list[Mistake]:
    """Everything that can be seen without a system."""
    found = RUN.mistakes((), document)
    bath, scheme = document.get("bath"), document.get("scheme")
    if isinstance(bath, Mapping):
        if "friction" in bath and "rate" in bath:
            found.append(Mistake(("bath", "rate"), "friction is given already: give one of friction and rate."))
        splitting, name = bath.get("splitting", "BAOAB"), scheme.get("name") if isinstance(scheme, Mapping) else None
        if splitting in SPLITTINGS and name in SCHEMES:
            if splitting not in OVER_ACTIONS:
                text = f"a bath with splitting {splitting} has its own pieces. Omit the scheme, or choose splitting GLA or Metropolised."
                found.append(Mistake(("scheme", "name"), text))
            elif name not in ACTIONS:
                found.append(Mistake(("scheme", "name"), f"{splitting} works over an action ({', '.join(ACTIONS)}), got {name}."))
    start = document.get("start")
    if isinstance(start, Mapping):
        first, *more = [key for key in start if key in MOTIONS] or [""]
        found += [Mistake(("start", key), f"{first} is given already: give one of {', '.join(MOTIONS)}.") for key in more]
        if "file" in start and "q" in start:
            found.append(Mistake(("start", "q"), "file is given already, which says where the bodies are."))
        if "frame" in start and "file" not in start:
            found.append(Mistake(("start", "frame"), "a frame belongs to a file: give file as well."))
    return found


def shown(value: Any) -> str:
    """A value as it would stand in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} ... {text[-8:]}"


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**64


def _words(wanted: Any) -> str:
    if isinstance(wanted, Wanted):
        return wanted.words
    if isinstance(wanted, Choice):
        return f"one of {', '.join(wanted.words)}"
    return "a quantity such as energy" if isinstance(wanted, Quantity | Quantities) else "a table"


def _numbers(value: Any, depth: int = 0) -> bool:
    """Numbers in lists, a few levels deep."""
    if depth > _DEEPEST or not isinstance(value, list) or not value:
        return False
    return all(map(number, value)) or all(_numbers(part, depth + 1) for part in value)


def _nested(value: Any, depth: int = 0) -> bool:
    """The arrays of a point: lists of numbers and of such lists, which need not be equally deep."""
    return depth <= _DEEPEST and isinstance(value, list) and bool(value) and all(number(part) or _nested(part, depth + 1) for part in value)


def _at_least(least: int) -> Wanted:
    return Wanted(f"a whole number ≥ {least}", lambda value: whole(value) and value >= least)


def _all(test: Callable[[Any], bool], count: int | None = None) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and bool(value) and (count is None or len(value) == count) and all(map(test, value))


_index = lambda value: whole(value) and value >= 0
_pair = _all(number, 2)
_WORD = Wanted("a word in quotation marks", lambda value: isinstance(value, str) and bool(value))
_FLAG = Wanted("true or false", lambda value: isinstance(value, bool))
_POSITIVE = Wanted("a positive number", lambda value: number(value) and value > 0)
_NUMBER = Wanted("a number", number)
_WHOLE = Wanted("a whole number", whole)
_ARRAY = Wanted("a number or lists of numbers", lambda value: number(value) or _nested(value))
_FRICTION = Wanted("a number, a list of numbers or a matrix", lambda value: number(value) or _numbers(value))
_QUANTITY = Table(
    {
        "name": _WORD,
        "symmetry": _WORD,
        "part": _at_least(0),
        "component": Wanted("an index ≥ 0 or a list of them", lambda value: _index(value) or _all(_index)(value)),
        "axis": Wanted("three numbers", _all(number, 3)),
    },
    ("name",),
)
_ONE = {"kind": _WORD, "of": Quantity(), "every": _at_least(1)}
KINDS = {
    "mean": Table({"kind": _WORD, "of": Quantity()}, ("of",)),
    "time_average": Table(_ONE, ("of",)),
    "extremes": Table(_ONE, ("of",)),
    "quantiles": Table(_ONE | {"levels": Wanted("numbers between 0 and 1", _all(lambda x: number(x) and 0 <= x <= 1))}, ("of",)),
    "histogram": Table(
        _ONE
        | {
            "of": Quantities(2),
            "range": Wanted("[low, high], or two of them", lambda value: _pair(value) or _all(_pair, 2)(value)),
            "bins": Wanted("a whole number ≥ 1, or two of them", lambda v: (whole(v) and v > 0) or _all(lambda b: whole(b) and b > 0, 2)(v)),
        },
        ("of", "range"),
    ),
    "autocorrelation": Table(_ONE | {"lags": _at_least(1), "about": _NUMBER}, ("of",)),
    "mean_squared_displacement": Table(
        {"kind": _WORD, "part": _at_least(0), "lags": _at_least(1), "per": Choice(("body", "component")), "every": _at_least(1)}
    ),
    "section": Table(
        {
            "kind": _WORD,
            "of": Quantity(),
            "level": _NUMBER,
            "at": Quantities(),
            "direction": Wanted("-1, 0 or 1", lambda value: whole(value) and -1 <= value <= 1),
            "capacity": _at_least(1),
        },
        ("of", "at"),
    ),
    "paths": Table({"kind": _WORD, "trajectories": Wanted("a list of numbers ≥ 0", _all(_index)), "every": _at_least(1)}, ("trajectories",)),
}
PATHS = {
    "Wiener": Table({"name": _WORD, "substeps": _at_least(1), "bounded": _FLAG}),
    "OrnsteinUhlenbeck": Table({"name": _WORD, "correlation_time": _POSITIVE}, ("correlation_time",)),
    "Jumps": Table({"name": _WORD, "rate": _POSITIVE, "size": _NUMBER, "spread": _NUMBER}, ("rate",)),
    "FractionalBrownian": Table({"name": _WORD, "hurst": _NUMBER, "steps": _at_least(2)}, ("hurst", "steps")),
    "Recorded": Table({"name": _WORD, "file": _WORD, "values": _FLAG, "increments": Wanted("rows of numbers", _numbers)}),
}
RUN = Table(
    {
        "step": _POSITIVE,
        "steps": _at_least(1),
        "trajectories": _at_least(1),
        "seed": _at_least(0),
        "every": _at_least(1),
        "burn_in": _at_least(0),
        "t0": _NUMBER,
        "block": _at_least(1),
        "system": Table({"name": _WORD, "parameters": Free()}, ("name",)),
        "scheme": Table({"name": Choice(SCHEMES), "retraction": Choice(("cayley", "exp")), "end": Choice(("left", "right"))}, ("name",)),
        "bath": Table(
            {
                "temperature": Wanted("a number kT ≥ 0", lambda value: number(value) and value >= 0),
                "friction": _FRICTION,
                "rate": _FRICTION,
                "splitting": Choice(SPLITTINGS),
                "own_noise": Choice(("drives",)),
            },
            ("temperature",),
        ),
        "path": Driven(),
        "start": Table(
            {"q": _ARRAY, "velocity": _ARRAY, "momentum": _ARRAY, "temperature": _POSITIVE, "project": _FLAG, "file": _WORD, "frame": _WHOLE}
        ),
        "sweep": Free(Wanted("a list of one or more numbers", _all(number))),
        "observe": Free(Observer()),
        "until": Free(Wanted("a positive standard error", _POSITIVE.holds)),
        "output": Table({"folder": _WORD, "overwrite": _FLAG, "final": _FLAG}),
    },
    ("system",),
)
