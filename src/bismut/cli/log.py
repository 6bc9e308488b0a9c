"""`bismut -v`, `bismut --log-level LEVEL`: what the logger `bismut` is told, on standard error; and `bismut --version`.

Standard error is looked up for each line, because a progress bar stands in for it while it is drawn.
"""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer

from bismut.process import check_address_space

LEVELS = ("debug", "info", "warning", "error")


def _version(asked: bool) -> None:
    from importlib.metadata import version

    if asked:
        print(f"bismut {version('bismut')}")
        raise typer.Exit


def common(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="report what is compiled and which blocks are run: --log-level debug")] = False,
    level: Annotated[str | None, typer.Option("--log-level", metavar="LEVEL", help=f"{', '.join(LEVELS)}; of the logger `bismut`")] = None,
    version: Annotated[bool, typer.Option("--version", help="show the version of bismut", is_eager=True, callback=_version)] = False,
) -> None:
    """Options of all commands; they may stand before the command or after it."""
    del version
    check_address_space()
    if level is not None and level.lower() not in LEVELS:
        raise typer.BadParameter(f"expected one of {', '.join(LEVELS)}, got {level!r}.", param_hint="--log-level")
    chosen = level or ("debug" if verbose else None)
    if chosen is None:
        return
    logger, handler = logging.getLogger("bismut"), _Stderr()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
    before = logger.level
    logger.setLevel(chosen.upper())
    logger.addHandler(handler)

    def quiet() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)

    context.call_on_close(quiet)


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr is not None:
            print(self.format(record), file=sys.stderr, flush=True)


def moved_to_the_front(arguments: list[str]) -> list[str]:
    """Options of all commands that were typed behind a command, before it."""
    front, rest, remaining = [], [], iter(arguments)
    for word in remaining:
        if word in ("-v", "--verbose") or word.startswith("--log-level="):
            front.append(word)
        elif word == "--log-level":
            front += [word, *_next(remaining)]
        else:
            rest.append(word)
            if word == "--":
                break
    return [*front, *rest, *remaining]


def _next(remaining: Any) -> list[str]:
    word = next(remaining, None)
    return [] if word is None else [word]
