"""A run from the command line: a run file with changes, or a document made from options alone.

Options come from the schema (`runs/schema.py`); that of the key `temperature` in the table [bath] is typed as --temperature and passed as
`bath__temperature`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bismut.arguments import MOTIONS
from bismut.cli.runs.model import from_file
from bismut.cli.runs.observers import from_typed
from bismut.cli.runs.prepare import DEFAULTS, Prepared, prepare
from bismut.cli.runs.schema import OPTIONS
from bismut.cli.runs.tables import Key, shown
from bismut.cli.runs.toml import Lines, parsed, read
from bismut.errors import BismutError
from bismut.registry import SCHEMES

# Of each group one is given: typed in place of what a file says, it replaces that.
_ONE_OF = (("friction", "rate", "mobility"), MOTIONS, ("q", "file"))


def from_options(what: str, typed: Mapping[str, Any]) -> Prepared:
    """The run of a run file, a model or a name, with the options that were typed, or everything that is wrong with it; None was not typed."""
    changes: dict[str, Any] = {}
    for name, value in typed.items():
        if value is not None and value != []:
            *tables, key = name.split("__")
            place = changes
            for table in tables:
                place = place.setdefault(table, {})
            place[key] = _parsed(name, OPTIONS[name], value)
    return from_changes(what, changes)


def from_changes(what: str, changes: Mapping[str, Any]) -> Prepared:
    """The same, of a document with the keys that are to be changed."""
    document: dict[str, Any] = {}
    lines: Lines = {}
    model = None
    if what.endswith(".toml"):
        document, lines = read(Path(what))
        document = {key: _beside(Path(what), value) for key, value in document.items()}
    elif ":" in what or what.endswith(".py"):
        model = from_file(what)
    else:
        document = {"system": {"name": what}}
    for key, value in changes.items():
        document[key], typed = _changed(key, document, value)
        lines = {path: line for path, line in lines.items() if path[:1] != (key,) or (typed is not None and path[-1] not in typed)}
    return prepare(document, lines, what, model)


def _changed(key: str, document: Mapping[str, Any], value: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """The new value of a key, and of a table what was typed of it."""
    old = document.get(key, {})
    if key == "observe":
        count = document.get("trajectories", DEFAULTS["trajectories"])
        return from_typed(value, count if isinstance(count, int) else 1), None
    if not isinstance(value, Mapping) or not isinstance(old, Mapping):
        return value, None
    if key == "system":
        parameters = old.get("parameters", {})
        value = value["parameters"]
        return ({**old, "parameters": {**parameters, **value}} if isinstance(parameters, Mapping) else old), value
    replaced = {name for group in _ONE_OF if set(group) & set(value) for name in group}
    replaced |= set(MOTIONS) if key == "start" and "file" in value else set()  # a frame says how it moves, too
    return {name: part for name, part in old.items() if name not in replaced} | dict(value), value


def _beside(file: Path, table: Any) -> Any:
    """A table of a run file; a file that it names lies beside the run file, wherever the command is given."""
    named = table.get("file") if isinstance(table, Mapping) else None
    return {**table, "file": str(file.parent / named)} if isinstance(named, str) else table


def _parsed(name: str, key: Key, value: Any) -> Any:
    """What was typed, as it would stand in a run file."""
    if key.typed == "numbers":
        return _numbers(name.rpartition("__")[2], value)
    if key.typed == "folder":
        return str(value)
    if name == "scheme__name":  # however it is capitalised
        return {known.lower(): known for known in SCHEMES.names()}.get(value.lower(), value)
    if key.typed != "assignments":
        return value
    pairs = assignments(f"--{key.option or name}", value, key.example)
    if name in ("system__parameters", "sweep"):  # a hyphen in the name of a parameter is an underscore
        pairs = {parameter.replace("-", "_"): part for parameter, part in pairs.items()}
    return {parameter: part if isinstance(part, list) else [part] for parameter, part in pairs.items()} if name == "sweep" else pairs


def assignments(option: str, typed: list[str] | None, example: str) -> dict[str, Any]:
    """name=value, each as it would stand in a run file."""
    pairs = {}
    for text in typed or ():
        name, equals, value = map(str.strip, text.partition("="))
        if not (equals and name and value):
            raise BismutError(f"{option} expects name=value, as in {option} {example}, got {text!r}.")
        pairs[name] = _value(value)
    return pairs


def _value(text: str) -> Any:
    """A number, a word, numbers separated by commas, or an array in brackets as TOML has it."""
    if text.startswith("["):
        return parsed(f"value = {text}", f"An array is written as [[1, 0], [0, 1]]; {shown(text)}")["value"]
    if "," in text:
        return [_value(part.strip()) for part in text.split(",") if part.strip()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), "none" if text.lower() == "none" else text)


def _numbers(name: str, text: str) -> Any:
    """A number or several, of an option."""
    value = _value(text)
    if any(isinstance(part, str) for part in (value if isinstance(value, list) else [value])):
        raise BismutError(f"--{name} expects a number, or several separated by commas, got {text!r}.")
    return value
