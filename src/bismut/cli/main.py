"""`bismut`: one command per file, which registers itself. Each prints what a person wants to read; the work is done elsewhere."""

import sys
import warnings
from importlib import import_module
from pkgutil import iter_modules

import typer

from bismut import cli
from bismut.cli.group import COMMANDS, Commands
from bismut.cli.log import common
from bismut.cli.terminal import make_readable
from bismut.errors import BismutWarning, ExtensionWarning

app = typer.Typer(
    cls=Commands,
    help="""A stochastic action in, a structure-preserving simulation out.

\b
  bismut list                      what is in the gallery
  bismut show heavy-top            what one of its systems is
  bismut run heavy-top             run it, and keep its statistics in output/heavy-top
  bismut plot output/heavy-top     draw what was kept
  bismut view output/heavy-top     look at trajectories that were kept, with --observe paths
  bismut verify heavy-top          measure every claim of its scheme
  bismut new my_model.py           start a model of your own: bismut run my_model.py:system

\b
Every command has --help with examples.
Exit codes: 0 success, 1 failed findings of verify or failed trajectories, 2 wrong usage, 3 undecided findings, 75 time is up, 130 interrupted.""",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(common)
for module in iter_modules(cli.__path__, "bismut.cli."):
    if not module.ispkg:
        import_module(module.name)
for name, (function, summary) in sorted(COMMANDS.items()):
    app.command(name, short_help=summary)(function)


def main() -> None:
    """Run the command that was typed."""
    make_readable()
    warnings.filterwarnings("ignore", category=BismutWarning)  # the header of a result and the certificate say it
    show = warnings.showwarning

    def shown(message, category, *place) -> None:
        print(f"bismut: {message}", file=sys.stderr) if issubclass(category, ExtensionWarning) else show(message, category, *place)

    warnings.showwarning = shown
    app(prog_name="bismut")
