"""TOML: read with the line of every key, so that a mistake can be pointed at; written in a form that reads back to the same numbers.

Reading is done by the standard library. It keeps no line numbers, so a second, much simpler scan finds the lines at which tables and keys begin.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bismut.errors import BismutError

Path_ = tuple[str, ...]  # the way to a value through tables
Lines = dict[Path_, int]

_LONG = ('"""', "'''")
_TOKEN = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'[^\']*\'|[#\[\]{}]')
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WORD = r'(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|\'[^\']*\')'
_NAME = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
_TABLE = re.compile(rf"\s*\[\[?\s*({_NAME})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"\s*({_NAME})\s*=(.*)$", re.DOTALL)


def read(file: Path) -> tuple[dict[str, Any], Lines]:
    """The tables of a file, and the line at which each table and key begins."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BismutError(f"There is no run file {file}. `bismut run NAME --write {file} --dry-run` writes one.") from None
    except IsADirectoryError:
        inside = file / "run.toml"
        where = f" The run file of this run is {inside}." if inside.is_file() else ""
        raise BismutError(f"Expected a run file, got the folder {file}.{where}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise BismutError(f"{file} cannot be read as text: {problem}.") from None
    document = parsed(text, str(file))
    if "system" not in document and (file.parent / "model.txt").is_file():
        raise BismutError(f"{file} is of a Python model, which a run file never names. `bismut info {file.parent}` shows the command to repeat it.")
    return document, lines_of(text)


def parsed(text: str, source: str) -> dict[str, Any]:
    """The tables of a text; what is no TOML, or cannot be read, is refused with a sentence."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise BismutError(f"{source} cannot be read: its arrays or tables are nested too deeply. No run needs more than a few levels.") from None
    except tomllib.TOMLDecodeError as problem:
        raise BismutError(f"{source} is not TOML: {problem}.") from None
    except ValueError as problem:  # an integer of thousands of digits
        raise BismutError(f"{source} holds a number that cannot be read: {problem}.") from None


def lines_of(text: str) -> Lines:
    """The line of every table and key, counted from 1; values that span lines are passed over."""
    lines: Lines = {}
    table: Path_ = ()
    depth, quote = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        rest = line
        if not quote and not depth:
            if header := _TABLE.match(line):
                table = _parts(header.group(1))
                for end in range(1, len(table) + 1):
                    lines.setdefault(table[:end], number)
                lines[table] = number
                continue
            if key := _KEY.match(line):
                name = _parts(key.group(1))
                for end in range(1, len(name) + 1):
                    lines.setdefault((*table, *name[:end]), number)
                rest = key.group(2)
        depth, quote = _open_after(rest, depth, quote)
    return lines


def line_of(lines: Lines, path: Path_) -> int | None:
    """The line of a value, or of the nearest table around it."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def write(document: Mapping[str, Any], head: str = "") -> str:
    """The tables as TOML: plain values first, then tables; tables within the second level stand in one line."""
    lines = [f"# {line}".rstrip() for line in head.splitlines()]
    _write_table(document, (), lines)
    return "\n".join(lines).strip("\n") + "\n"


def _write_table(table: Mapping[str, Any], path: Path_, lines: list[str]) -> None:
    nested = {name: value for name, value in table.items() if isinstance(value, Mapping) and len(path) < 2}
    plain = {name: value for name, value in table.items() if name not in nested}
    if path and (plain or not nested):
        lines += ["", f"[{'.'.join(map(_key, path))}]"]
    elif lines and not path:
        lines.append("")
    lines += [f"{_key(name)} = {_value(value)}" for name, value in plain.items()]
    for name, value in nested.items():
        _write_table(value, (*path, name), lines)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)  # the shortest text that reads back to the same number
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_value(part)}" for name, part in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise BismutError(f"A run file holds numbers, words, lists and tables, got a {type(value).__name__}: {value!r}.")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _parts(name: str) -> Path_:
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in re.findall(_WORD, name))


def _open_after(rest: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets, and which long quotation, are open at the end of a line. Each character is looked at once."""
    place = 0
    while True:
        if quote:
            end = rest.find(quote, place)
            if end < 0:
                return depth, quote
            place, quote = end + 3, ""
        token = _TOKEN.search(rest, place)
        if token is None or token.group() == "#":
            return depth, quote
        place = token.end()
        if token.group() in _LONG:
            quote = token.group()
        else:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.group(), 0)
