"""What was typed as a document: a run file with changes, or a document made from options alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bismut.cli.runs.model import from_file
from bismut.cli.runs.observers import from_words
from bismut.cli.runs.prepare import DEFAULTS, Prepared, prepare
from bismut.cli.runs.toml import Lines, read
from bismut.errors import BismutError


def from_typed(
    what: str,
    settings: list[str],
    scheme: Mapping[str, Any],
    bath: Mapping[str, Any],
    numbers: Mapping[str, Any],
    observe: list[str] | None,
    output: Mapping[str, Any],
) -> Prepared:
    """The run that was asked for, or all that is wrong with it. Options that were not typed are None."""
    document: dict[str, Any] = {}
    lines: Lines = {}
    model = None
    if what.endswith(".toml"):
        document, lines = read(Path(what))
    elif ":" in what or what.endswith(".py"):
        model = from_file(what)
    else:
        document = {"system": {"name": what}}
    typed = {
        "bath": {**bath, "friction": _numbers("friction", bath["friction"]), "rate": _numbers("rate", bath["rate"])},
        "scheme": scheme,
        "output": output,
    }
    document |= {key: value for key, value in numbers.items() if value is not None}
    for table, options in typed.items():
        given = {key: value for key, value in options.items() if value is not None}
        if given:
            old = document.get(table, {})
            # A friction typed in place of a rate written in a file replaces it, and the other way round.
            gone = {"friction": "rate", "rate": "friction"}
            document[table] = {key: value for key, value in old.items() if gone.get(key) not in given} | given if isinstance(old, Mapping) else given
            lines = {path: line for path, line in lines.items() if path[:1] != (table,) or path[-1] not in given}
    if settings:
        system = document.get("system", {})
        if isinstance(system, Mapping) and isinstance(system.get("parameters", {}), Mapping):
            document["system"] = {**system, "parameters": {**system.get("parameters", {}), **dict(map(_setting, settings))}}
    if observe:
        count = document.get("trajectories", DEFAULTS["trajectories"])
        document["observe"] = from_words(observe, count if isinstance(count, int) else 1)
    return prepare(document, lines, what, model)


def _setting(text: str) -> tuple[str, Any]:
    """name=value as it would stand in a run file."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise BismutError(f"--set wants name=value, as in --set inertia=1,2,3, but {text!r} came.")
    return name.strip().replace("-", "_"), _value(value.strip())


def _value(text: str) -> Any:
    if "," in text:
        return [_value(part.strip()) for part in text.split(",") if part.strip()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), "none" if text.lower() == "none" else text)


def _numbers(name: str, text: str | None) -> Any:
    if text is None:
        return None
    value = _value(text)
    if any(isinstance(part, str) for part in (value if isinstance(value, list) else [value])):
        raise BismutError(f"--{name} wants a number or several with commas between, but {text!r} came.")
    return value
