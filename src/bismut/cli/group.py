"""What all commands share: wrong use ends with 2 and a sentence, an interruption with 130, and JAX computes in double precision.

A command registers itself, `@command("what it does")`. Modules of commands import nothing heavy when they are imported, because `bismut --help` and
completion should be immediate.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

from bismut.cli import interrupted
from bismut.cli.log import moved_to_the_front
from bismut.cli.terminal import discard_output, escaped
from bismut.registry import FIGURES, GALLERY, REGISTRIES

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
Function = TypeVar("Function", bound=Callable[..., Any])
COMMANDS: dict[str, tuple[Callable[..., Any], str]] = {}  # by name: the function, and its line in `bismut --help`


def command(summary: str, name: str = "") -> Callable[[Function], Function]:
    """A decorator: a command of bismut."""

    def register(function: Function) -> Function:
        COMMANDS[name or function.__name__] = function, summary
        return function

    return register


class Commands(TyperGroup):
    """The commands of bismut, with errors as exit codes."""

    def invoke(self, ctx: Any) -> Any:
        with escaped():
            return self._invoke(ctx)

    def _invoke(self, ctx: Any) -> Any:
        from bismut.errors import BismutError, DiskFullError, ProcessError, SimulationError

        double_precision()
        try:
            outcome = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a closed pipe can be told from a mistake
            return outcome
        except BrokenPipeError:
            raise typer.Exit(discard_output()) from None
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
        """An unknown command suggests the nearest. Help is completed with the names that are registered."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            from bismut.errors import nearest

            ctx.fail(f"There is no command {args[0]!r}. {nearest(args[0], self.commands)}")
        name, chosen, rest = super().resolve_command(ctx, args)
        if chosen is not None and {"-h", "--help"} & set(rest):
            for texts in (chosen, *chosen.params):
                vars(texts)["help"] = with_names(getattr(texts, "help", None))
        return name, chosen, rest


def with_names(text: str | None) -> str | None:
    """A text with the names that are registered: {schemes} becomes Midpoint, Verlet, ..."""
    for group, registry in REGISTRIES.items():
        if text is not None and f"{{{group}}}" in text:
            text = text.replace(f"{{{group}}}", ", ".join(registry.names()))
    return text


def double_precision() -> None:
    """float64, whether JAX is imported already or not yet."""
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", True)
    else:
        os.environ["JAX_ENABLE_X64"] = "1"


def parsed_integer(text: str) -> int:
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
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if not match or int(match[1]) >= int(match[2]):
        raise typer.BadParameter(f"expected blocks A:B with A < B, such as 0:8, got {text!r}.")
    return range(int(match[1]), int(match[2]))


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    """Arrays and paths as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def completion(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completion from names, which are asked for when they are needed."""
    return lambda incomplete="": [name for name in names() if name.startswith(incomplete)]


system_names = completion(GALLERY.names)
figure_names = completion(lambda: (*FIGURES.names(), "all"))
