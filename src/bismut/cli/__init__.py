"""The command line: `bismut figure ballistic-pendulum`, `bismut list`, `bismut show NAME`."""

from bismut.cli.main import main

__all__ = ["main"]
