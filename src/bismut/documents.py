"""JSON documents of a run folder: written so that any reader takes them, and checked when they are read.

    bytes  →  JSON of bounded size and depth  →  a rule: which value stands where, of which type, between which bounds

A forger of a folder can compute checksums, so an unaltered document may still be wrong. A rule is a function that returns what is wrong with a value,
or "". What a rule does not name is only bounded, so that later versions can write more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from bismut.errors import StoreError

Rule = Callable[[Any], str]

SIZE, DEPTH, MEMBERS, LENGTH = 2**26, 32, 10**6, 2**16  # bytes, nesting, members of a list or table, characters of a text
COUNT = 2**53  # steps, trajectories, blocks
NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # numbers that JSON lacks, as Zarr writes them


def plain_json(value: Any, indent: int | None = None) -> str:
    """JSON that any reader takes: numbers that are not finite become text."""
    return json.dumps(json_value(value), indent=indent, ensure_ascii=False, allow_nan=False, separators=(",", ":") if indent is None else None)


def json_value(value: Any) -> Any:
    """Numbers, texts, lists and tables as JSON has them."""
    if isinstance(value, dict):
        return {str(key): json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    if hasattr(value, "tolist"):
        return json_value(value.tolist())
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()  # names of files may hold bytes that no text has
    if isinstance(value, float) and not math.isfinite(value):
        return NOT_FINITE[0] if math.isnan(value) else NOT_FINITE[1] if value > 0 else NOT_FINITE[2]
    return value if value is None or isinstance(value, bool | int | float) else json_value(str(value))


def parsed(data: bytes | str, where: str, rule: Rule) -> Any:
    """The value of a JSON document that keeps to a rule."""
    if len(data) > SIZE:
        raise StoreError(f"{where} has {len(data)} bytes; no document of bismut has more than {SIZE}.")
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise StoreError(f"{where} is not JSON: {str(problem) or 'nested too deeply'}.") from None
    check(value, where, rule)
    return value


def check(value: Any, where: str, rule: Rule) -> None:
    """Refuse a value that does not keep to a rule."""
    if wrong := bounded(value) or rule(value):
        raise StoreError(f"{where}: {wrong}. It is not read.")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def bounded(value: Any, depth: int = DEPTH) -> str:
    """Any JSON that is neither too deep nor too large; texts can be written as UTF-8."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"{value[:60]!r} is no text"
        return "" if len(value) <= SIZE else f"expected a text, got one of {len(value)} letters"
    if isinstance(value, list | dict):
        if not depth:
            return f"nested more deeply than {DEPTH} times"
        if len(value) > MEMBERS:
            return f"expected at most {MEMBERS} members, got {len(value)}"
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        return next((wrong for part in inner if (wrong := bounded(part, depth - 1))), "")
    return "" if not isinstance(value, int) or abs(value) < 2**128 else f"expected a number, got one of {value.bit_length()} bits"


def rule(expected: str, holds: Callable[[Any], bool]) -> Rule:
    """A rule from what is expected, in words, and a test of it."""
    return lambda value: "" if holds(value) else f"expected {expected}, got {_shown(value)}"


def _shown(value: Any) -> str:
    return f"{str(value)[:60]!r}" if isinstance(value, str) else f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)[:60]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


anything: Rule = lambda value: ""
text = rule("a text", lambda value: isinstance(value, str) and len(value) <= LENGTH)
document = rule("a text", lambda value: isinstance(value, str))  # of any length
count = rule("a count", lambda value: type(value) is int and 0 <= value <= COUNT)
boolean = rule("true or false", lambda value: isinstance(value, bool))
number = rule("a number", _is_number)
number_or_not_finite = rule("a number", lambda value: (isinstance(value, str) and value in NOT_FINITE) or _is_number(value))


def one_of(*names: str) -> Rule:
    return rule(" or ".join(names), lambda value: isinstance(value, str) and value in names)


def optional(inner: Rule) -> Rule:
    return lambda value: "" if value is None else inner(value)


def either(first: Rule, second: Rule) -> Rule:
    return lambda value: "" if not first(value) else second(value)


def listed(inner: Rule, length: int | None = None) -> Rule:
    outer = rule("a list" if length is None else f"a list of {length}", lambda value: isinstance(value, list) and length in (None, len(value)))
    return lambda value: outer(value) or next((f"[{i}]: {wrong}" for i, part in enumerate(value) if (wrong := inner(part))), "")


def table(known: Mapping[str, Rule] | None = None, other: Rule = anything, needed: tuple[str, ...] = ()) -> Rule:
    """Names and values; `needed` are those that must be there."""
    outer = rule("a table", lambda value: isinstance(value, dict))

    def judge(value: Any) -> str:
        if wrong := outer(value):
            return wrong
        if missing := [name for name in needed if name not in value]:
            return f"{', '.join(missing)} is missing"
        return next((f"{name[:60]}: {wrong}" for name, part in value.items() if (wrong := ((known or {}).get(name) or other)(part))), "")

    return judge
