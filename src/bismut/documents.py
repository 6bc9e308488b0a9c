"""Documents of a run folder, checked when they are read: who forges a folder can compute checksums, so being unaltered is not being right.

    bytes  →  JSON of bounded size and depth  →  a rule: what stands where, of which type, between which bounds

A rule is a function that gives what is wrong with a value, in words, or nothing. What a rule does not name is only held to bounds, so that later
versions can write more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from bismut.errors import StoreError

Rule = Callable[[Any], str]

SIZE, DEPTH, MEMBERS, LENGTH = 2**26, 32, 10**6, 2**16  # bytes, nesting, members of a list or table, letters of a text
COUNT = 2**53  # steps, trajectories, blocks


def parsed(data: bytes | str, where: str, rule: Rule) -> Any:
    """What a JSON document says, if it keeps to a rule."""
    if len(data) > SIZE:
        raise StoreError(f"{where} has {len(data)} bytes; no document of bismut has more than {SIZE}.")
    try:
        value = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise StoreError(f"{where} is not JSON: {str(problem) or 'nested too deeply'}.") from None
    check(value, where, rule)
    return value


def check(value: Any, where: str, rule: Rule) -> None:
    """Refuse a value that does not keep to a rule."""
    if wrong := bounded(value) or rule(value):
        raise StoreError(f"{where}: {wrong}. It is not read.")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def shown(value: Any) -> str:
    return f"{str(value)[:60]!r}" if isinstance(value, str) else f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)[:60]


def _expected(what: str, value: Any) -> str:
    return f"expected {what}, got {shown(value)}"


def bounded(value: Any, depth: int = DEPTH) -> str:
    """Anything of JSON that is neither too deep nor too large; texts can be written as UTF-8."""
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


def anything(value: Any) -> str:
    del value
    return ""


def text(value: Any) -> str:
    return "" if isinstance(value, str) and len(value) <= LENGTH else _expected("a text", value)


def document(value: Any) -> str:
    """A text of any length."""
    return "" if isinstance(value, str) else _expected("a text", value)


def count(value: Any) -> str:
    return "" if type(value) is int and 0 <= value <= COUNT else _expected("a count", value)


def boolean(value: Any) -> str:
    return "" if isinstance(value, bool) else _expected("true or false", value)


def number(value: Any) -> str:
    return "" if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else _expected("a number", value)


def number_or_word(value: Any) -> str:
    """As JSON holds what is not finite."""
    return "" if value in ("NaN", "Infinity", "-Infinity") else number(value)


def one_of(*words: str) -> Rule:
    return lambda value: "" if isinstance(value, str) and value in words else _expected(" or ".join(words), value)


def optional(rule: Rule) -> Rule:
    return lambda value: "" if value is None else rule(value)


def either(first: Rule, second: Rule) -> Rule:
    return lambda value: "" if not first(value) else second(value)


def listed(rule: Rule, length: int | None = None) -> Rule:
    def judge(value: Any) -> str:
        if not isinstance(value, list) or (length is not None and len(value) != length):
            return _expected("a list" if length is None else f"a list of {length}", value)
        return next((f"[{i}]: {wrong}" for i, part in enumerate(value) if (wrong := rule(part))), "")

    return judge


def table(known: Mapping[str, Rule] | None = None, other: Rule = anything, needed: tuple[str, ...] = ()) -> Rule:
    """Names and values; `needed` are those that must be there."""

    def judge(value: Any) -> str:
        if not isinstance(value, dict):
            return _expected("a table", value)
        if missing := [name for name in needed if name not in value]:
            return f"{', '.join(missing)} is missing"
        return next((f"{name[:60]}: {wrong}" for name, part in value.items() if (wrong := ((known or {}).get(name) or other)(part))), "")

    return judge
