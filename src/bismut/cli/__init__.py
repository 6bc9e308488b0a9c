"""The command line, one command per file: `bismut --help`."""

import os
import signal
import sys
import time
from types import FrameType
from typing import Any

from bismut.operating_system import INTERRUPT, heeded, interrupt_later

__all__ = ["began", "interrupted", "main"]

_CLOCK: list[float] = []


def main() -> None:
    """Run the command that was typed. Reading the commands is part of it; Ctrl-C, SIGTERM and SIGHUP end all of it without a traceback."""
    _CLOCK[:] = [time.monotonic()]
    for number in heeded():
        signal.signal(number, _interrupt)
    sys.unraisablehook = _resend_interrupt
    try:
        from bismut.cli.main import main as command

        command()
    except KeyboardInterrupt as problem:
        sys.exit(interrupted(problem))


def began() -> float:
    """When the command was typed: before anything heavy was read, which may take long on a shared disk."""
    return _CLOCK[0] if _CLOCK else time.monotonic()


def interrupted(problem: KeyboardInterrupt) -> int:
    """Said in a word; returns the exit code, by which shells tell signals apart."""
    print("bismut: interrupted.", file=sys.stderr)
    number = problem.args[0] if problem.args and isinstance(problem.args[0], int) else INTERRUPT
    return 128 + number


def _interrupt(number: int, frame: FrameType | None) -> None:
    """KeyboardInterrupt with the signal; at once the end where a module is being read, for libraries read by halves fail in ways of their own."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"bismut: interrupted.\n")
            os._exit(128 + number)
        frame = frame.f_back
    raise KeyboardInterrupt(number)


def _resend_interrupt(ignored: Any) -> None:
    """Ctrl-C within a callback, such as one of garbage collection in XLA, is dropped by Python; it is sent once more, a moment later."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        interrupt_later(0.05)
    else:
        sys.__unraisablehook__(ignored)
