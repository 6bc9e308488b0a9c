"""What was typed as a document: a run file with changes, or a document made from options alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bismut.cli.runs.defaults import DEFAULTS
from bismut.cli.runs.model import from_file
from bismut.cli.runs.observers import from_words
from bismut.cli.runs.prepare import Prepared, prepare
from bismut.cli.runs.schema import MOTIONS, shown
from bismut.cli.runs.toml import Lines, parsed, read
from bismut.errors import BismutError

# Of each group one is given: typed in place of what a file says, it replaces that.
ONE_OF = (("friction", "rate"), MOTIONS, ("q", "file"))


def from_typed(what: str, numbers: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]], observe: list[str]) -> Prepared:
    """The run that was asked for, or all that is wrong with it: a run file, a model or a name, with the numbers and tables that were typed.

    Options that were not typed are None.
    """
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
    for key, value in numbers.items():
        if value is not None:
            document[key] = value
            lines.pop((key,), None)
    for table, options in tables.items():
        given = {key: value for key, value in options.items() if value is not None}
        if given and table == "parameters":
            system = document.get("system", {})
            if isinstance(system, Mapping) and isinstance(system.get("parameters", {}), Mapping):
                document["system"] = {**system, "parameters": {**system.get("parameters", {}), **given}}
        elif given:
            old = document.get(table, {})
            gone = {key for group in ONE_OF if set(group) & set(given) for key in group}
            gone |= set(MOTIONS) if table == "start" and "file" in given else set()  # a frame says how it moves, too
            document[table] = {key: value for key, value in old.items() if key not in gone} | given if isinstance(old, Mapping) else given
            lines = {path: line for path, line in lines.items() if path[:1] != (table,) or path[-1] not in given}
    if observe:
        lines = {path: line for path, line in lines.items() if path[:1] != ("observe",)}
        count = document.get("trajectories", DEFAULTS["trajectories"])
        document["observe"] = from_words(observe, count if isinstance(count, int) else 1)
    return prepare(document, lines, what, model)


def _beside(file: Path, table: Any) -> Any:
    """A table of a run file; a file that it names lies beside the run file, wherever the command is given."""
    named = table.get("file") if isinstance(table, Mapping) else None
    return {**table, "file": str(file.parent / named)} if isinstance(named, str) else table


def settings(option: str, typed: list[str] | None, example: str) -> dict[str, Any]:
    """name=value, each as it would stand in a run file."""
    found = {}
    for text in typed or ():
        name, equals, value = map(str.strip, text.partition("="))
        if not (equals and name and value):
            raise BismutError(f"{option} expects name=value, as in {option} {example}, got {text!r}.")
        found[name] = _value(value)
    return found


def bath(temperature: float | None, friction: str | None, rate: str | None, splitting: str | None) -> dict[str, Any]:
    """The table of a heat bath."""
    return {"temperature": temperature, "friction": numbers("friction", friction), "rate": numbers("rate", rate), "splitting": splitting}


def parameters(typed: list[str] | None) -> dict[str, Any]:
    """Parameters and their values; a hyphen in a name is an underscore."""
    return {name.replace("-", "_"): value for name, value in settings("--set", typed, "inertia=1,2,3").items()}


def sweeps(typed: list[str] | None) -> dict[str, Any]:
    """Parameters and lists of their values; one value is a list of one."""
    found = settings("--sweep", typed, "stiffness=0.5,1,2")
    return {name.replace("-", "_"): value if isinstance(value, list) else [value] for name, value in found.items()}


def _value(text: str) -> Any:
    """A number, a word, numbers with commas between, or an array in brackets as TOML has it."""
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


def numbers(name: str, text: str | None) -> Any:
    """A number or several, of an option."""
    if text is None:
        return None
    value = _value(text)
    if any(isinstance(part, str) for part in (value if isinstance(value, list) else [value])):
        raise BismutError(f"--{name} expects a number, or several separated by commas, got {text!r}.")
    return value
