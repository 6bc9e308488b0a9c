"""The commands of `bismut`, one file each. Each prints what a person wants to read; the work is done elsewhere."""

import typer

from bismut.cli.bench import bench
from bismut.cli.check import check
from bismut.cli.doctor import doctor
from bismut.cli.figure import figure
from bismut.cli.group import Commands
from bismut.cli.info import info
from bismut.cli.listing import list_systems
from bismut.cli.new import new
from bismut.cli.plot import plot
from bismut.cli.run import run
from bismut.cli.show import show

app = typer.Typer(
    cls=Commands,
    help="""A stochastic action in, a structure-preserving simulation out.

\b
  bismut list                      what is in the gallery
  bismut run heavy-top             run a system and keep its statistics
  bismut plot output/heavy-top     draw what was kept
  bismut new my_model.py           begin a model of your own

\b
Every command has --help. Exit codes: 0 fine, 1 failed findings or trajectories, 2 wrong use, 130 interrupted.""",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, command in {
    "list": list_systems,
    "show": show,
    "new": new,
    "check": check,
    "run": run,
    "plot": plot,
    "info": info,
    "figure": figure,
    "bench": bench,
    "doctor": doctor,
}.items():
    app.command(name)(command)


def main() -> None:
    """Run the command that was typed."""
    app(prog_name="bismut")
