"""Observers from tables, each tried on shapes before the run, so that all that is wrong with them shows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from bismut import ensembles
from bismut.cli.runs.quantities import above, quantity, together
from bismut.cli.runs.schema import BOOKED, Mistake
from bismut.ensembles.checks import check_start, one_start
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Watcher
from bismut.ensembles.result import RESERVED
from bismut.errors import BismutError
from bismut.flows import Langevin
from bismut.mechanics import Maxwell, Scheme, State
from bismut.mechanics.state import blank_ledger
from bismut.noise import Wiener

FEW = 3  # trajectories that `--observe paths` keeps whole


def default_observers(scheme: Scheme) -> dict[str, Any]:
    """What one wants to see of any system: energy, temperature where there is one, and the momentum map of every symmetry."""
    system = scheme.system
    words = ["energy", *(["temperature"] if system.quadratic else []), *system.symmetries]
    return {word: {"of": word} for word in words}


def from_words(words: list[str], trajectories: int) -> dict[str, Any]:
    """The tables for words typed on the command line: quantities, and `paths` for the first few trajectories kept whole."""
    chosen = [word.strip() for words_ in words for word in words_.split(",") if word.strip()]
    paths = {"kind": "paths", "trajectories": list(range(min(FEW, trajectories)))}
    return {word: paths if word == "paths" else {"of": word} for word in chosen}


def with_books(scheme: Scheme, start: State | Maxwell, asked: Any, found: list[Mistake]) -> State | Maxwell:
    """The start with a ledger, if heat, work or acceptance are observed."""
    booked = (
        [name for name, table in asked.items() if isinstance(table, Mapping) and _names(table) & set(BOOKED)] if isinstance(asked, Mapping) else []
    )
    if not booked:
        return start
    if not isinstance(scheme, Langevin):
        found += [
            Mistake(("observe", name), f"{', '.join(BOOKED)} are kept by a bath, but there is none. Add [bath] temperature = ...") for name in booked
        ]
        return start
    if isinstance(start, Maxwell):
        return Maxwell(start.system, start.q, start.temperature, ledger=True)
    return State(start.q, start.p, blank_ledger(scheme.system.dtype, check_start(scheme, start)))


def observers(
    document: Mapping[str, Any], scheme: Scheme, start: State | Maxwell, own: Mapping[str, Callable], found: list[Mistake]
) -> dict[str, Any]:
    """What `simulate` takes as observe. Mistakes go to `found`; tables with a mistake of form are passed over."""
    made: dict[str, Any] = {}
    wrong = {mistake.path[:2] for mistake in found}
    if ("observe",) in wrong:
        return made
    trajectories, seed = (document[key] if (key,) not in wrong else 1 for key in ("trajectories", "seed"))
    try:
        one = one_start(start, Wiener(seed), 0, check_start(scheme, start))
    except BismutError as problem:
        found.append(Mistake(("system",), str(problem)))
        return made
    asked = {name: table for name, table in document["observe"].items() if ("observe", name) not in wrong}
    for name, table in asked.items():
        try:
            if name in RESERVED or "/" in name:
                raise BismutError(f"results keep this name for themselves ({', '.join(RESERVED)}, and '/'). Choose another.")
            if ("trajectories",) not in wrong and (beyond := [n for n in table.get("trajectories", ()) if n >= trajectories]):
                raise BismutError(f"trajectories {beyond} were asked for, but the run has {trajectories}, counted from 0.")
            made[name] = _observer(table, scheme, own)
            watcher = made[name] if isinstance(made[name], Watcher) else Records(made[name])
            watcher.bound(scheme, name, one)
        except BismutError as problem:
            found.append(Mistake(("observe", name), str(problem)))
    return made


def _observer(table: Mapping[str, Any], scheme: Scheme, own: Mapping[str, Callable]) -> Any:
    rest = {key: value for key, value in table.items() if key not in ("kind", "of")}
    kind = table.get("kind", "mean")
    if kind == "paths":
        return ensembles.paths(rest.pop("trajectories"), **rest)
    if kind == "mean_squared_displacement":
        part = rest.pop("part", None)
        return ensembles.mean_squared_displacement(None if part is None else (lambda v: jax.tree.leaves(v)[part].reshape(-1)), **rest)
    several = table["of"] if isinstance(table["of"], list) else [table["of"]]
    of = [quantity(one, scheme, own) for one in several]
    if kind == "mean":
        return of[0]
    if kind == "histogram":
        return ensembles.histogram(of[0] if len(of) == 1 else tuple(of), **rest)
    if kind == "section":
        at = rest.pop("at")
        values = together([quantity(one, scheme, own) for one in (at if isinstance(at, list) else [at])])
        return ensembles.section(above(of[0], float(rest.pop("level", 0.0))), at=values, **rest)
    return getattr(ensembles, kind)(of[0], **rest)


def _names(table: Mapping[str, Any]) -> set[str]:
    """All quantities a table names."""
    parts = [part for key in ("of", "at") if key in table for part in (table[key] if isinstance(table[key], list) else [table[key]])]
    return {str(part.get("name")) if isinstance(part, Mapping) else str(part) for part in parts}
