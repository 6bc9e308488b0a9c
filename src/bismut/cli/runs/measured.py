"""The whole gallery, measured pair by pair: each system with its own scheme, and with every other that takes it.

A report is kept as soon as it is there, one file for each pair, so that what was interrupted can be taken up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from bismut import actions, flows
from bismut.blame import why
from bismut.errors import BismutError
from bismut.findings import Finding, Report, Verdict, verify
from bismut.gallery import entries
from bismut.gallery.entry import Entry
from bismut.mechanics import Scheme

_VARIATIONAL = ("VariationalEuler", "Midpoint", "Verlet")
_PHASE_SPACE = ("HamiltonianEuler", "HamiltonianMidpoint", "HamiltonianVerlet")
_SPLITTINGS = ("BAOAB", "ABOBA", "OBABO")


class Pair(NamedTuple):
    """A system and a scheme: names, how the scheme is made, and whether it is the one that the system comes with."""

    system: str
    scheme: str
    entry: Entry
    make: Callable[[], Scheme]
    own: bool

    @property
    def name(self) -> str:
        return f"{self.system}, {self.scheme}"


class Settings(NamedTuple):
    """What decides a report beside the code: reports with others are not mixed."""

    budget: str
    order: bool
    seed: int = 0
    version: str = version("bismut")


def pairs(own: bool = False, only: tuple[str, ...] = ()) -> tuple[list[Pair], dict[str, str]]:
    """All pairs, and the reason for each that there is not; of some systems, if they are named."""
    found, refused = [], {}
    for name, entry in entries().items():
        if only and name not in only:
            continue
        system = entry.build()
        chosen = entry.scheme(system)
        found.append(Pair(name, chosen.title, entry, partial(_constant, chosen), own=True))
        for title, make in {} if own else _others(system, chosen).items():
            try:
                entry.start(make())
            except BismutError as problem:
                refused[f"{name}, {title}"] = why(problem)
                continue
            except Exception:  # no refusal, but a mistake: `measure` meets it again and says so
                pass
            found.append(Pair(name, title, entry, make, own=False))
    return sorted(found, key=lambda pair: not pair.own), refused  # the most useful first


def _constant(scheme: Scheme) -> Scheme:
    return scheme


def _others(system: Any, chosen: Scheme) -> dict[str, Callable[[], Scheme]]:
    """Schemes of the same kind as the one that a system comes with, by title."""
    kinds = (
        _PHASE_SPACE
        if isinstance(chosen, actions.DiscreteHamiltonian)
        else _VARIATIONAL
        if isinstance(chosen, actions.Action | flows.Langevin)
        else ()
    )
    made: dict[str, Callable[[], Scheme]] = {kind: partial(getattr(actions, kind), system) for kind in kinds if kind != chosen.title}
    if isinstance(chosen, flows.Langevin):
        baths = [getattr(flows, name) for name in _SPLITTINGS]
        made = {f"Langevin({bath})": partial(chosen.split, bath) for bath in baths if bath != chosen.splitting} | made
    return made


def measure(pair: Pair, settings: Settings) -> Report:
    """The report on a pair; what breaks is a failure in it, and stops no other pair."""
    begun = time.monotonic()
    try:
        scheme = pair.make()
        return verify(
            scheme,
            pair.entry.start(scheme),
            step=pair.entry.step,
            seed=settings.seed,
            budget=settings.budget,
            order=settings.order,
            integrity=settings.order and pair.own,
        )
    except Exception as problem:
        broken = Finding("could not be measured", float("nan"), 0.0, Verdict.failed, f"{type(problem).__name__}: {why(problem)}")
        return Report(pair.scheme, pair.entry.step, (broken,), None, settings.seed, time.monotonic() - begun)


def kept(folder: Path, pair: Pair, settings: Settings) -> Report | None:
    """The report of an interrupted run, if it was made with the same settings."""
    file = _file(folder, pair)
    if not file.exists():
        return None
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        return Report.from_json(told["report"]) if told["settings"] == list(settings) else None
    except (ValueError, KeyError, TypeError, BismutError):
        return None  # cut short, or of another time: it is measured again


def keep(folder: Path, pair: Pair, settings: Settings, report: Report) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = _file(folder, pair)
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"settings": settings, "report": report.as_json()}, ensure_ascii=False), encoding="utf-8")
    part.replace(file)


def _file(folder: Path, pair: Pair) -> Path:
    plain = "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in f"{pair.system}--{pair.scheme}")
    return folder / f"{plain}.json"


def gone_through(
    chosen: list[Pair], settings: Settings, folder: Path, *, resume: bool, begun: Callable[[int, Pair], None]
) -> Iterator[tuple[Pair, Report]]:
    """Reports one after the other; `begun` is told before each that is measured."""
    for number, pair in enumerate(chosen):
        report = kept(folder, pair, settings) if resume else None
        if report is None:
            begun(number, pair)
            report = measure(pair, settings)
            keep(folder, pair, settings, report)
        yield pair, report
