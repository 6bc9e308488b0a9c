"""The command line, one command per file: `bismut --help`."""

import os
import signal
import sys
import time
from types import FrameType
from typing import Any

__all__ = ["began", "interrupted", "main"]

_CLOCK: list[float] = []


def main() -> None:
    """Run the command that was typed. Reading the commands is part of it; Ctrl-C, SIGTERM and SIGHUP end all of it without a traceback."""
    _CLOCK[:] = [time.monotonic()]
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) != signal.SIG_IGN:  # nohup ignores SIGHUP, and that stays so
            signal.signal(getattr(signal, name), _interrupt)
    sys.unraisablehook = _heard_again
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
    number = problem.args[0] if problem.args and isinstance(problem.args[0], int) else signal.SIGINT
    return 128 + number


def _interrupt(number: int, frame: FrameType | None) -> None:
    """KeyboardInterrupt with the signal; at once the end where a module is being read, for libraries read by halves fail in ways of their own."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"bismut: interrupted.\n")
            os._exit(128 + number)
        frame = frame.f_back
    raise KeyboardInterrupt(number)


def _heard_again(ignored: Any) -> None:
    """Ctrl-C within a callback, such as one of garbage collection in XLA, is dropped by Python; it is sent once more, a moment later."""
    import threading

    if issubclass(ignored.exc_type, KeyboardInterrupt):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)
