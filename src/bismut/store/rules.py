"""Schemas of the documents of a run, as rules of `bismut.documents`. docs/store.md says the same in words."""

from __future__ import annotations

from typing import Any

from bismut.documents import (
    Rule,
    anything,
    boolean,
    count,
    document,
    either,
    listed,
    number,
    number_or_not_finite,
    one_of,
    optional,
    rule,
    table,
    text,
)

STATES = ("running", "interrupted", "failed", "complete")
VARIANTS = 10**6  # combinations of swept values

_COUNTS = either(count, listed(count))
_VARIANTS = rule(f"at most {VARIANTS} variants", lambda value: type(value) is int and 0 <= value <= VARIANTS)
_CHECKSUM = rule(
    "[size, SHA-256]",
    lambda value: isinstance(value, list) and len(value) == 2 and type(value[0]) is int and value[0] >= 0 and isinstance(value[1], str),
)

OWNER = table({"host": text, "process": count, "began": optional(text), "locked": text}, needed=("host", "process"))

_RECORD = table({"steps": count, "trajectories": count, "failed": count, "step": count, "goes_on": boolean, "watched": boolean})
ENTRY = table(
    {
        "time": text,
        "what": text,
        "state": one_of(*STATES),
        "asked": table({"trajectories": count, "steps": count, "variants": _VARIANTS}),
        "done": table({"trajectories": _COUNTS, "steps": count}),
        "places": table(other=table(other=_CHECKSUM)),
        "drops": listed(text),
        "texts": table(other=document),
        "overridden": listed(text),
        "variant": count,
        "block": count,
        "record": _RECORD,
        "run_record": table(),
    }
)

_BODIES = table(
    {
        "kind": one_of("points", "bodies", "disks", "turning", "motions", "planar_motions"),
        "plane": rule("1, 2 or 3", lambda value: type(value) is int and 1 <= value <= 3),
        "count": optional(count),
        "mass": optional(listed(number)),
        "moments": optional(listed(listed(number, 3))),
        "axes": optional(listed(listed(listed(number, 3), 3))),
        "box": optional(listed(number_or_not_finite)),
    },
    needed=("kind", "plane", "count", "mass", "moments", "axes", "box"),
)


def _bodies(value: Any) -> str:
    """As many masses, moments and axes as bodies."""
    if wrong := _BODIES(value):
        return wrong
    bodies = 1 if value["count"] is None else value["count"]
    uneven = [name for name in ("mass", "moments", "axes") if value[name] is not None and len(value[name]) != bodies]
    return f"expected {bodies} of {uneven[0]}, got {len(value[uneven[0]])}" if uneven else "" if bodies else "expected at least one body"


_RUN: dict[str, Rule] = {
    "scheme": text,
    "space": text,
    "step": number,
    "steps": count,
    "every": count,
    "trajectories": count,
    "t0": number,
    "seed": anything,
    "burn_in": count,
    "note": text,
    "arithmetic": text,
    "remarks": listed(text),
    "steps_before": count,
    "steps_run": optional(count),
    "trajectories_run": optional(_COUNTS),
    "sweep": optional(table(other=listed(number_or_not_finite))),
    "versions": table(other=text),
}
_MADE = ("scheme", "space", "step", "steps", "every", "trajectories", "t0", "seed", "versions")
PROVENANCE = table(
    {
        "command": text,
        "began": text,
        "written": text,
        "identity": table({"steps": count, "trajectories": count, "every": count, "block": count}, needed=("steps", "trajectories")),
        "versions": table(other=text),
        "seconds": number,
        "blocks": listed(count, 2),
        "taken_up": listed(table()),
        "model": optional(table({"place": optional(text), "sha256": text, "parameters": table()})),
        "outcome": table({"words": text, "failed": listed(table())}, needed=("words",)),
        "run": table(_RUN, needed=_MADE),
        "bodies": optional(_bodies),
        "labels": table(other=table({"columns": optional(listed(text))})),
    }
)
RESULTS = table(needed=("run", "outcome", "written"))  # of the provenance of a run that has results

_FINDING = table(
    {
        "law": text,
        "words": text,
        "verdict": text,
        "group": text,
        "measured": optional(number_or_not_finite),
        "limit": optional(number_or_not_finite),
        "error": optional(number_or_not_finite),
        **{name: optional(number) for name in ("expected", "alarm", "doubt", "samples", "seconds")},
        "data": table(),
    },
    needed=("law", "verdict", "words"),
)
CERTIFICATE = table(
    {
        "schema": text,
        "subject": text,
        "step": number,
        "findings": listed(_FINDING),
        "false_alarm_rate": optional(number),
        "seconds": optional(number),
    },
    needed=("schema", "subject", "step", "findings"),
)
