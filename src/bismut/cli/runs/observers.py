"""Observers from tables, each tried on shapes before the run, so that all mistakes are listed together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any

from bismut.cli.runs.quantities import above, label, labels, needs_ledger, quantity, together
from bismut.cli.runs.schema import MEAN, OBSERVER
from bismut.cli.runs.tables import Mistake, Quantity, parameters_of
from bismut.cli.runs.toml import parsed
from bismut.ensembles.checks import check_looks, check_name
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Watcher
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, nearest
from bismut.mechanics import Maxwell, Scheme, State, start_on, time_of
from bismut.registry import OBSERVERS, QUANTITIES
from bismut.user_errors import reason_of

FEW = 3  # trajectories that `--observe paths` stores completely


def default_observers(scheme: Scheme) -> dict[str, Any]:
    """Energy, temperature where there is one, the momentum map of every symmetry, and every invariant."""
    system = scheme.system
    names = ["energy", *(["temperature"] if system.quadratic else []), *system.symmetries, *system.invariants]
    return {name: {"of": name} for name in names}


def with_defaults(table: Any) -> Any:
    """The table of an observer with the defaults of its kind; `every` stays that of the run."""
    kind = table.get("kind", MEAN) if isinstance(table, Mapping) else MEAN
    if kind == MEAN or kind not in OBSERVERS:
        return table
    try:
        known = {name: one.default for name, one in parameters_of(OBSERVERS[kind]).items() if one.default not in (None, Parameter.empty)}
    except BismutError:  # of a package that cannot be imported, which the check of the document reports
        return table
    known |= {"level": 0.0} if kind == "section" else {}
    return {**table, **{name: list(value) if isinstance(value, tuple) else value for name, value in known.items() if name not in table}}


def from_typed(options: list[str], trajectories: int) -> dict[str, Any]:
    """The tables for what was typed.

    energy,vertical        quantities; `paths` stores the first few trajectories
    time_average:energy    an observer of a quantity
    name={...}             any observer, as it would stand in a run file
    """
    tables: dict[str, Any] = {}
    for typed in options:
        if "=" in typed:
            tables |= _tables(typed)
            continue
        for name in filter(None, map(str.strip, typed.split(","))):
            kind, colon, of = name.partition(":")
            if colon:
                tables[f"{kind}_{of}"] = {"kind": kind, "of": of}
            elif name == "paths":
                tables[name] = {"kind": name, "trajectories": list(range(min(FEW, trajectories)))}
            elif name in OBSERVERS and name not in QUANTITIES and _needs_nothing(OBSERVERS[name]):
                tables[name] = {"kind": name}  # such as mean_squared_displacement, which needs no quantity
            else:
                tables[name] = {"of": name}
    return tables


def _needs_nothing(observer: Callable[..., Any]) -> bool:
    return all(one.default is not Parameter.empty for one in parameters_of(observer).values())


def _tables(typed: str) -> dict[str, Any]:
    try:
        tables = parsed(typed, "--observe")
    except BismutError:
        tables = {}
    if not tables or not all(isinstance(table, Mapping) for table in tables.values()):
        raise BismutError(
            f"--observe expects names such as energy,q, an observer such as time_average:energy, or a table as in a run file, such as "
            f'\'turns={{kind="histogram", of="q", range=[-3, 3]}}\', got {typed!r}.'
        )
    return tables


def with_ledger(scheme: Scheme, start: State | Maxwell, asked: Any, t0: Any, mistakes: list[Mistake]) -> State | Maxwell:
    """The start with a ledger, if heat, work or acceptance are observed."""
    tables = {name: table for name, table in asked.items() if isinstance(table, Mapping)} if isinstance(asked, Mapping) else {}
    booked = [name for name, table in tables.items() if any(map(needs_ledger, _names(table)))]
    if not booked:
        return start
    try:
        scheme.check_ledger()
    except BismutError as problem:
        mistakes += [Mistake(("observe", name), str(problem)) for name in booked]
        return start
    return start_on(scheme, start, t0, ledger=True)


def observers(
    document: Mapping[str, Any], scheme: Scheme, start: State | Maxwell, own: Mapping[str, Callable], mistakes: list[Mistake]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `simulate` takes as observe, and labels for the numbers of each observer. Mistakes are added to `mistakes`; tables with a mistake of form
    are skipped."""
    built: dict[str, Any] = {}
    captions: dict[str, Any] = {}
    wrong = {mistake.path[:2] for mistake in mistakes}
    if ("observe",) in wrong:
        return built, captions
    trajectories = document["trajectories"] if ("trajectories",) not in wrong else 1
    try:
        one = start_at(scheme, start, document["t0"] if ("t0",) not in wrong else time_of(start)).example
    except BismutError as problem:
        mistakes.append(Mistake(("system",), str(problem)))
        return built, captions
    asked = {name: table for name, table in document["observe"].items() if ("observe", name) not in wrong}
    for name, table in asked.items():
        try:
            check_name(name)
            if ("trajectories",) not in wrong and (beyond := [n for n in table.get("trajectories", ()) if n >= trajectories]):
                raise BismutError(f"trajectories {beyond} were requested, but the run has {trajectories}, counted from 0.")
            built[name] = _observer(table, scheme, own)
            check_looks({name: built[name]}, document["steps"] if ("steps",) not in wrong else None)
            watcher = built[name] if isinstance(built[name], Watcher) else Records(built[name])
            watcher.bound(scheme, name, one)
            captions[name] = _captions(table, scheme, one, own)
        except BismutError as problem:
            mistakes.append(Mistake(("observe", name), str(problem)))
        except Exception as problem:  # an observer of another package may fail in any way
            mistakes.append(Mistake(("observe", name), f"this cannot be built: {type(problem).__name__}: {reason_of(problem)}."))
    return built, captions


def reachable(until: Any, observed: Mapping[str, Any], asked: Any, mistakes: list[Mistake]) -> None:
    """Mistakes of [until]: it names observers that have a standard error."""
    if not isinstance(until, Mapping):
        return
    for name in until:
        watcher = observed.get(name)
        if not isinstance(asked, Mapping) or name not in asked:
            mistakes.append(Mistake(("until", name), f"{name!r} is not observed. {nearest(name, asked if isinstance(asked, Mapping) else ())}"))
        elif isinstance(watcher, Watcher) and type(watcher).error is Watcher.error:
            text = "this observer has no standard error. A mean over trajectories and time_average have one."
            mistakes.append(Mistake(("until", name), text))


def _observer(table: Mapping[str, Any], scheme: Scheme, own: Mapping[str, Callable]) -> Any:
    kind = table.get("kind", MEAN)
    if kind == MEAN:
        return together([quantity(one, scheme, own) for one in _several(table["of"])])
    arguments = {key: value for key, value in table.items() if key != "kind"}
    for key, expected in OBSERVER.table(kind).keys.items():
        if isinstance(expected, Quantity) and key in arguments:
            several = [quantity(one, scheme, own) for one in _several(arguments[key])]
            arguments[key] = tuple(several) if expected.functions > 1 and len(several) > 1 else together(several)
    if kind == "section":
        arguments["of"] = above(arguments["of"], float(arguments.pop("level", 0.0)))
    if kind == "paths":
        arguments["of"] = arguments.pop("trajectories")
    return OBSERVERS[kind](**arguments)


def _captions(table: Mapping[str, Any], scheme: Scheme, example: State, own: Mapping[str, Callable]) -> dict[str, Any]:
    """Labels of what is observed: the quantities (of), each of their numbers (columns), and the condition of a section (where)."""
    if "of" not in table:
        return {}
    asked = _several(table["at" if "at" in table else "of"])
    columns = [one for part in asked for one in labels(part, quantity(part, scheme, own), scheme, example)]
    captions: dict[str, Any] = {"of": [label(part) for part in asked], "columns": columns}
    if "at" in table:
        side = {1: " from below", -1: " from above", 0: ""}[table.get("direction", 1)]
        captions["where"] = f"{label(table['of'])} = {table.get('level', 0.0):g}{side}"
    return captions


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _names(table: Mapping[str, Any]) -> set[str]:
    """All quantities that a table names."""
    parts = [part for key in ("of", "at") if key in table for part in _several(table[key])]
    return {str(part.get("name")) if isinstance(part, Mapping) else str(part) for part in parts}
