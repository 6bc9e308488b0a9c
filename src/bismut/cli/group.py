"""What all commands share: wrong use ends with 2 and a sentence, an interruption with 130, and JAX computes in double precision.

Modules of commands import nothing heavy when they are read: `bismut --help` and a completed word should be there at once.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from bismut.cli import interrupted
from bismut.cli.log import moved_to_the_front
from bismut.cli.terminal import escaped, nobody_listens

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130


class Commands(TyperGroup):
    """The commands of bismut, with errors as exit codes."""

    def invoke(self, ctx: Any) -> Any:
        with escaped():
            return self._invoke(ctx)

    def _invoke(self, ctx: Any) -> Any:
        from bismut.errors import BismutError, DiskFullError, ProcessError, SimulationError

        double_precision()
        try:
            found = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a reader that has gone can be told from a mistake
            return found
        except BrokenPipeError:
            raise typer.Exit(nobody_listens()) from None
        except (BismutError, ProcessError, SimulationError) as problem:
            print(f"bismut: {problem}", file=sys.stderr)
            raise typer.Exit(FAILED if isinstance(problem, DiskFullError | ProcessError | SimulationError) else WRONG_USE) from None
        except OSError as problem:
            full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
            if problem.filename is None and not full:
                raise  # not a file of the user's
            print(f"bismut: {f'{problem.filename}: ' if problem.filename else ''}{problem.strerror}.", file=sys.stderr)
            raise typer.Exit(FAILED if full else WRONG_USE) from None
        except KeyboardInterrupt as problem:
            raise typer.Exit(interrupted(problem)) from None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, moved_to_the_front(args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """An unknown command suggests the nearest."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            from bismut.errors import nearest

            ctx.fail(f"There is no command {args[0]!r}. {nearest(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


def double_precision() -> None:
    """float64, whether JAX is there already or is still to come."""
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", True)
    else:
        os.environ["JAX_ENABLE_X64"] = "1"


def whole_number(text: str) -> int:
    """A whole number as people type it: 1000000, 1_000_000 or 1e6."""
    try:
        return int(text)
    except ValueError:
        value = float(text) if re.fullmatch(r"[0-9.]+[eE]\+?[0-9]{1,2}", text) else 0.5
    if not value.is_integer():
        raise typer.BadParameter(f"expected a whole number such as 1000 or 1e6, got {text!r}.")
    return int(value)


def duration(text: str) -> float:
    """Seconds, as people and queues write them: 90, 90s, 30m, 2h, 1d or 1:30:00."""
    plain = re.fullmatch(r"(\d+(?:\.\d*)?)([smhd]?)", text)
    clock = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if plain:
        seconds = float(plain[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[plain[2]]
    elif clock:
        seconds = sum(int(part or 0) * unit for part, unit in zip(clock.groups(), (86400, 3600, 60, 1), strict=True))
    else:
        seconds = 0.0
    if not seconds > 0:
        raise typer.BadParameter(f"expected a time such as 90s, 30m, 2h or 1:30:00, got {text!r}.")
    return float(seconds)


def block_range(text: str) -> range:
    """Blocks as A:B, from A to before B."""
    found = re.fullmatch(r"(\d+):(\d+)", text)
    if not found or int(found[1]) >= int(found[2]):
        raise typer.BadParameter(f"expected blocks A:B with A < B, such as 0:8, got {text!r}.")
    return range(int(found[1]), int(found[2]))


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    """Arrays and paths as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def system_names(incomplete: str = "") -> list[str]:
    """Names of the gallery, for completion: read off its files, because importing them takes seconds."""
    files = sorted((Path(__file__).parents[1] / "gallery").glob("*.py"))
    found = (re.search(r'^ENTRY = Entry\(\s*"([^"]+)"', file.read_text(encoding="utf-8"), re.MULTILINE) for file in files)
    return sorted(name.group(1) for name in found if name and name.group(1).startswith(incomplete))


def figure_names(incomplete: str = "") -> list[str]:
    """Names of the figures, found in the same way."""
    files = sorted((Path(__file__).parents[1] / "figures").glob("*.py"))
    found = (re.search(r'^FIGURE = Figure\(\s*"([^"]+)"', file.read_text(encoding="utf-8"), re.MULTILINE) for file in files)
    return [name for name in (*sorted(name.group(1) for name in found if name), "all") if name.startswith(incomplete)]


def begins(words: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Completion from a list of words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]
