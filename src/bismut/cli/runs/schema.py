"""What a run file may hold, and with which options it is typed: one description, from which come the checks, the options and their help.

    [system] name, [system.parameters]                                  a system of the gallery
    [scheme] name, and the options of that scheme                       how it steps; the gallery's choice without it
    [bath]   temperature, friction or rate, splitting, own_noise        Langevin dynamics instead of the bare scheme
             or temperature, mobility, metropolised                     overdamped (Brownian) dynamics
    [path]   name, and the options of that path                         what drives, instead of white noise
    [start]  q, one of velocity, momentum and temperature, project      where it begins; what is left out is the gallery's choice
             or file and frame instead of q                             a state that another program wrote
    step, steps, trajectories, seed, every, burn_in, t0, block          numbers of the run
    arithmetic                                                          fused or plain: how they are rounded
    [sweep]  parameters and their values                                extra axes of all results
    [observe.NAME] kind, and the arguments of that observer             what is observed
    [until]  observers and standard errors                              trajectories are added until these are reached
    [output] folder, overwrite, final                                   where it goes

The tables of schemes, paths and observers follow from the signatures of what is registered (`bismut.registry`), so a new one needs no line here.
Nothing in a run file is code, and nothing in it is a place where code could be found. This module imports neither JAX nor NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bismut.arguments import ARITHMETICS, MOTIONS, POSITIVE, TABLE, Rule, is_number, sequence
from bismut.cli.runs.tables import FLAG, NUMBER, WHOLE, WORD, Key, Mistake, NamedValues, OneOf, Registered, Table, at_least
from bismut.registry import OBSERVERS, PATHS, SCHEMES, SPLITTINGS

MEAN = "mean"  # the kind of an observer that is a function of a state alone
_DEEPEST = 16  # lists within lists; a point of many bodies has four


def _is_array(value: Any, depth: int = 0) -> bool:
    """The arrays of a point: lists of numbers and of such lists, which need not be equally deep."""
    return depth <= _DEEPEST and isinstance(value, list) and bool(value) and all(is_number(part) or _is_array(part, depth + 1) for part in value)


_ARRAY = Rule("a number or lists of numbers", lambda value: is_number(value) or _is_array(value))
_FRICTION = Rule("a number, a list of numbers or a matrix", _ARRAY.holds)

SCHEME = Registered(
    SCHEMES,
    given=("system",),
    keys={
        "name": Key(OneOf(SCHEMES.names), "word", "NAME", "{schemes} [the system's own choice]", "scheme"),
        "retraction": Key(TABLE["retraction"], "word", "NAME", "cayley or exp, for schemes on groups [cayley]"),
    },
)
PATH = Registered(
    PATHS,
    given=("seed",),  # that of the run
    adapted={"Recorded": lambda table: Table({**table.keys, "file": WORD, "values": FLAG})},
)
OBSERVER = Registered(
    OBSERVERS,
    "kind",
    MEAN,
    adapted={
        "section": lambda table: Table({**table.keys, "level": NUMBER}, table.required),
        "paths": lambda table: Table({("trajectories" if key == "of" else key): rule for key, rule in table.keys.items()}, ("trajectories",)),
    },
)
RUN = Table(
    {
        "system": Table(
            {
                "name": WORD,
                "parameters": Key(
                    NamedValues(),
                    "assignments",
                    "NAME=VALUE",
                    "a parameter: name=1.5, name=1,2,3 or name=none; may be repeated",
                    "set",
                    "inertia=1,2,3",
                ),
            },
            ("name",),
        ),
        "scheme": SCHEME,
        "bath": Table(
            {
                "temperature": Key(Rule("a number kT ≥ 0", lambda value: is_number(value) and value >= 0), "number", "KT", "a heat bath: its kT"),
                "friction": Key(
                    _FRICTION,
                    "numbers",
                    "NUMBERS",
                    "of the bath: a number, or one per coordinate; without it the system's own noise is the bath",
                ),
                "rate": Key(_FRICTION, "numbers", "NUMBER", "of the bath, instead of friction: how fast momenta decay"),
                "mobility": Key(_FRICTION, "numbers", "NUMBERS", "overdamped motion instead: a number, or one per coordinate; no friction and rate"),
                "metropolised": FLAG,
                "splitting": Key(OneOf(SPLITTINGS.names), "word", "NAME", "of the bath: {splittings} [BAOAB]"),
                "own_noise": OneOf(lambda: ("drives",)),
            },
            ("temperature",),
        ),
        "path": PATH,
        "start": Key(
            Table({"q": _ARRAY, "velocity": _ARRAY, "momentum": _ARRAY, "temperature": POSITIVE, "project": FLAG, "file": WORD, "frame": WHOLE}),
            "assignments",
            "KEY=VALUE",
            "where it starts: q=0.5 or q=[[...]], and one of velocity=, momentum=, temperature= (random momenta); project=true moves it onto "
            "the constraints; file=last.gsd and frame=-1 begin at a frame (GSD, extxyz); what is not given is the system's own; may be repeated",
            example="q=0.5",
        ),
        "step": Key(POSITIVE, "number", "H", "time step [the system's own choice]"),
        "steps": Key(at_least(1), "whole", "N", "how many steps [1000]"),
        "trajectories": Key(at_least(1), "whole", "N", "how many trajectories, or the most with --until [100]"),
        "seed": Key(at_least(0), "whole", "N", "of the noise [0]"),
        "every": Key(at_least(1), "whole", "N", "steps between observations [about a hundred observations]"),
        "burn_in": Key(at_least(0), "whole", "N", "steps before observation begins [0]"),
        "t0": Key(NUMBER, "number", "T", "the time at the start, if anything depends on it [0]"),
        "sweep": Key(
            NamedValues(sequence("a list of one or more numbers", is_number)),
            "assignments",
            "NAME=A,B,C",
            "run with each of several values of a parameter, on the same noise; may be repeated, for a grid",
            example="stiffness=0.5,1,2",
        ),
        "observe": Key(
            NamedValues(OBSERVER),
            "list",
            "WHAT",
            "what is observed, see above; separated by commas or repeated [energy, temperature, all momentum maps]",
        ),
        "until": Key(
            NamedValues(Rule("a positive standard error", POSITIVE.holds)),
            "assignments",
            "NAME=ERROR",
            "stop adding trajectories once the standard error of an observer is that small; may be repeated",
            example="energy=0.01",
        ),
        "output": Table(
            {
                "folder": Key(WORD, "folder", "FOLDER", "folder for the results [output/NAME, or the next free name]", "out"),
                "overwrite": FLAG,
                "final": Key(FLAG, "flag", "", "keep the last states, from which a run can be extended [yes]", "final/--no-final"),
            }
        ),
        "block": Key(at_least(1), "whole", "N", "trajectories per block [by the work of the run]"),
        "arithmetic": Key(
            OneOf(lambda: ARITHMETICS), "word", "NAME", "fused or plain: a·b + c is rounded once or twice [fused, where the processor can]"
        ),
    },
    ("system",),
)


def _options(table: Table | Registered, path: str = "") -> Iterator[tuple[str, Key]]:
    for name, part in table.keys.items():
        if isinstance(part, Key):
            yield f"{path}{name}", part
        elif isinstance(part, Table | Registered):
            yield from _options(part, f"{name}__")


OPTIONS: dict[str, Key] = dict(_options(RUN))  # by table and key: bath__temperature


def document_mistakes(document: Mapping[str, Any]) -> list[Mistake]:
    """Everything that can be judged without a system."""
    mistakes = RUN.check((), document)
    bath, start, path = (document[name] if isinstance(document.get(name), Mapping) else {} for name in ("bath", "start", "path"))
    if "friction" in bath and "rate" in bath:
        mistakes.append(Mistake(("bath", "rate"), "friction is given already: give one of friction and rate."))
    if "mobility" in bath:
        text = "mobility is given already, for overdamped motion, which has none."
        mistakes += [Mistake(("bath", key), text) for key in ("friction", "rate", "splitting", "own_noise") if key in bath]
    elif "metropolised" in bath:
        mistakes.append(Mistake(("bath", "metropolised"), 'it belongs to a mobility: give mobility, or splitting = "Metropolised" with friction.'))
    first, *more = [key for key in start if key in MOTIONS] or [""]
    mistakes += [Mistake(("start", key), f"{first} is given already: give one of {', '.join(MOTIONS)}.") for key in more]
    if "file" in start and "q" in start:
        mistakes.append(Mistake(("start", "q"), "file is given already, which says where the bodies are."))
    if "frame" in start and "file" not in start:
        mistakes.append(Mistake(("start", "frame"), "a frame belongs to a file: give file as well."))
    if path.get("name") == "Recorded" and ("file" in path) == ("increments" in path):
        mistakes.append(Mistake(("path",), "expected one of file and increments: where the record is, or its numbers."))
    return mistakes
