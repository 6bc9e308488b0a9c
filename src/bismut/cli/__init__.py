"""The command line, one command per file: `bismut --help`."""

from bismut.cli.main import main

__all__ = ["main"]
