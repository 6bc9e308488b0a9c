"""What the commands that measure how a system answers share: the run they make from options, and how they end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from bismut.cli.group import FAILED, print_json

BATH = ("system__parameters", "bath__temperature", "bath__friction", "bath__rate", "bath__mobility", "bath__splitting")
RUN = ("start", "step", "steps", "trajectories", "seed", "burn_in")


def of_quantity(what: str, typed: Mapping[str, Any], of: str, option: str = "--of") -> tuple[Any, Any]:
    """The run that was typed, and the function of a state that an option names."""
    from bismut.cli.runs.from_options import from_options
    from bismut.ensembles import Watcher
    from bismut.errors import BismutError

    ready = from_options(what, {**typed, "observe": [of]})
    functions = list(ready.observe.values())
    if len(functions) != 1 or isinstance(functions[0], Watcher):
        raise BismutError(f"{option} takes one quantity, a function of a state such as energy, got {of}.")
    return ready, functions[0]


def numbers(ready: Any) -> dict[str, Any]:
    """The step and the counts of a run."""
    return {"step": float(ready.document["step"])} | {name: int(ready.document[name]) for name in RUN[2:]}


def finish(measured: Any, ok: bool, as_json: bool, picture: Path | None = None, dark: bool = False) -> None:
    """Show what was measured; exit code 1 if it does not hold."""
    print_json(measured.as_json()) if as_json else print(measured, flush=True)  # first: what is computed is shown whatever becomes of the picture
    if picture is not None:
        measured.figure(picture, dark=dark)
    if not ok:
        raise typer.Exit(FAILED)
