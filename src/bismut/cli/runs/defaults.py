"""Everything a run did without being told, written into its document: what is in the file does not change when a default does.

What stays unsaid is what the system itself provides: its start, the retraction of its space, and a scheme or a bath that no table can express.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

from bismut import ensembles
from bismut.cli.runs.schema import KINDS, SCHEMES, whole
from bismut.mechanics import Scheme

DEFAULTS = {"steps": 1000, "trajectories": 100, "seed": 0, "burn_in": 0, "t0": 0.0}
_LOOKS = 100  # about so many, if `every` is not given


def numbers(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the numbers of a run that were not given."""
    found = DEFAULTS | dict(document)
    if "every" not in found and whole(found["steps"]) and found["steps"] > 0:
        found["every"] = -(-found["steps"] // _LOOKS)
    for table, key, value in (("bath", "splitting", "BAOAB"), ("output", "final", True)):
        if isinstance(found.get(table, {}), Mapping) and (table in document or table == "output"):
            found[table] = {**found.get(table, {}), key: found.get(table, {}).get(key, value)}
    return found


def scheme(made: Scheme) -> dict[str, Any] | None:
    """The table [scheme] of a scheme that the gallery chose, if a table can say it."""
    name = type(made).__name__
    if name not in SCHEMES:
        return None
    chosen = {key: getattr(made, key, None) for key in ("retraction", "end")}
    return {"name": name} | {key: value for key, value in chosen.items() if value is not None}


def observer(table: Any) -> Any:
    """The table of an observer with what its kind takes for granted; `every` stays that of the run."""
    if not isinstance(table, Mapping) or table.get("kind", "mean") not in KINDS:
        return table
    kind = table.get("kind", "mean")
    if kind == "mean":
        return dict(table)
    given = {name: one.default for name, one in signature(getattr(ensembles, kind)).parameters.items()}
    given |= {"level": 0.0} if kind == "section" else {}
    known = {name: value for name, value in given.items() if name in KINDS[kind].keys and value is not None and value is not Parameter.empty}
    return {**table, **{name: list(value) if isinstance(value, tuple) else value for name, value in known.items() if name not in table}}
