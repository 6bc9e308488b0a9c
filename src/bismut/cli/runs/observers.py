"""Observers from tables, each tried on shapes before the run, so that all that is wrong with them shows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bismut import ensembles
from bismut.cli.runs.quantities import above, label, labels, quantity, together
from bismut.cli.runs.schema import BOOKED, Mistake
from bismut.cli.runs.toml import parsed
from bismut.ensembles.checks import check_looks, check_name, example_of
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Watcher
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, nearest
from bismut.mechanics import Maxwell, Scheme, State, start_on, time_of

FEW = 3  # trajectories that `--observe paths` keeps whole


def default_observers(scheme: Scheme) -> dict[str, Any]:
    """What one wants to see of any system: energy, temperature where there is one, the momentum map of every symmetry, and every invariant."""
    system = scheme.system
    words = ["energy", *(["temperature"] if system.quadratic else []), *system.symmetries, *system.invariants]
    return {word: {"of": word} for word in words}


def from_words(words: list[str], trajectories: int) -> dict[str, Any]:
    """The tables for what was typed.

    energy,vertical        quantities; `paths` keeps the first few trajectories whole
    time_average:energy    an observer of a quantity
    name={...}             anything, as it would stand in a run file
    """
    found: dict[str, Any] = {}
    for typed in words:
        if "=" in typed:
            found |= _tables(typed)
            continue
        for word in filter(None, map(str.strip, typed.split(","))):
            kind, colon, of = word.partition(":")
            if colon:
                found[f"{kind}_{of}"] = {"kind": kind, "of": of}
            elif word == "paths":
                found[word] = {"kind": word, "trajectories": list(range(min(FEW, trajectories)))}
            elif word == "mean_squared_displacement":
                found[word] = {"kind": word}
            else:
                found[word] = {"of": word}
    return found


def _tables(typed: str) -> dict[str, Any]:
    try:
        found = parsed(typed, "--observe")
    except BismutError:
        found = {}
    if not found or not all(isinstance(table, Mapping) for table in found.values()):
        raise BismutError(
            f"--observe expects names such as energy,q, an observer such as time_average:energy, or a table as in a run file, such as "
            f'\'turns={{kind="histogram", of="q", range=[-3, 3]}}\', got {typed!r}.'
        )
    return found


def with_books(scheme: Scheme, start: State | Maxwell, asked: Any, t0: Any, found: list[Mistake]) -> State | Maxwell:
    """The start with a ledger, if heat, work or acceptance are observed."""
    booked = (
        [name for name, table in asked.items() if isinstance(table, Mapping) and _names(table) & set(BOOKED)] if isinstance(asked, Mapping) else []
    )
    if not booked:
        return start
    try:
        scheme.check_ledger()
    except BismutError as problem:
        found += [Mistake(("observe", name), str(problem)) for name in booked]
        return start
    return start_on(scheme, start, t0, ledger=True)


def observers(
    document: Mapping[str, Any], scheme: Scheme, start: State | Maxwell, own: Mapping[str, Callable], found: list[Mistake]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `simulate` takes as observe, and what the numbers of each observer are called. Mistakes go to `found`; tables with a mistake of form
    are passed over."""
    made: dict[str, Any] = {}
    called: dict[str, Any] = {}
    wrong = {mistake.path[:2] for mistake in found}
    if ("observe",) in wrong:
        return made, called
    trajectories = document["trajectories"] if ("trajectories",) not in wrong else 1
    try:
        one = example_of(*start_at(scheme, start, document["t0"] if ("t0",) not in wrong else time_of(start)))
    except BismutError as problem:
        found.append(Mistake(("system",), str(problem)))
        return made, called
    asked = {name: table for name, table in document["observe"].items() if ("observe", name) not in wrong}
    for name, table in asked.items():
        try:
            check_name(name)
            if ("trajectories",) not in wrong and (beyond := [n for n in table.get("trajectories", ()) if n >= trajectories]):
                raise BismutError(f"trajectories {beyond} were requested, but the run has {trajectories}, counted from 0.")
            made[name] = _observer(table, scheme, own)
            check_looks({name: made[name]}, document["steps"] if ("steps",) not in wrong else None)
            watcher = made[name] if isinstance(made[name], Watcher) else Records(made[name])
            watcher.bound(scheme, name, one)
            called[name] = _called(table, scheme, one, own)
        except BismutError as problem:
            found.append(Mistake(("observe", name), str(problem)))
    return made, called


def reachable(until: Any, observed: Mapping[str, Any], asked: Any, found: list[Mistake]) -> None:
    """Mistakes of [until]: it names observers that have a standard error."""
    if not isinstance(until, Mapping):
        return
    for name in until:
        watcher = observed.get(name)
        if not isinstance(asked, Mapping) or name not in asked:
            found.append(Mistake(("until", name), f"{name!r} is not observed. {nearest(name, asked if isinstance(asked, Mapping) else ())}"))
        elif isinstance(watcher, Watcher) and type(watcher).error is Watcher.error:
            text = "this observer has no standard error. A mean over trajectories and time_average have one."
            found.append(Mistake(("until", name), text))


def _observer(table: Mapping[str, Any], scheme: Scheme, own: Mapping[str, Callable]) -> Any:
    rest = {key: value for key, value in table.items() if key not in ("kind", "of")}
    kind = table.get("kind", "mean")
    if kind == "paths":
        return ensembles.paths(rest.pop("trajectories"), **rest)
    if kind == "mean_squared_displacement":
        return ensembles.mean_squared_displacement(**rest)
    of = [quantity(one, scheme, own) for one in _several(table["of"])]
    if kind == "mean":
        return of[0]
    if kind == "histogram":
        return ensembles.histogram(of[0] if len(of) == 1 else tuple(of), **rest)
    if kind == "section":
        values = together([quantity(one, scheme, own) for one in _several(rest.pop("at"))])
        return ensembles.section(above(of[0], float(rest.pop("level", 0.0))), at=values, **rest)
    return getattr(ensembles, kind)(of[0], **rest)


def _called(table: Mapping[str, Any], scheme: Scheme, example: State, own: Mapping[str, Callable]) -> dict[str, Any]:
    """What is observed, in words: the quantities (of), each of their numbers (columns), and the condition of a section (where)."""
    if "of" not in table:
        return {}
    asked = _several(table["at" if "at" in table else "of"])
    columns = [one for part in asked for one in labels(part, quantity(part, scheme, own), scheme, example)]
    found: dict[str, Any] = {"of": [label(part) for part in asked], "columns": columns}
    if "at" in table:
        side = {1: " from below", -1: " from above", 0: ""}[table.get("direction", 1)]
        found["where"] = f"{label(table['of'])} = {table.get('level', 0.0):g}{side}"
    return found


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _names(table: Mapping[str, Any]) -> set[str]:
    """All quantities a table names."""
    parts = [part for key in ("of", "at") if key in table for part in _several(table[key])]
    return {str(part.get("name")) if isinstance(part, Mapping) else str(part) for part in parts}
