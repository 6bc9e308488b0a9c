"""The commands of `bismut`, one file each. Each prints what a person wants to read; the work is done elsewhere."""

import warnings

import typer

from bismut.cli.bench import bench
from bismut.cli.check import check
from bismut.cli.doctor import doctor
from bismut.cli.export import export
from bismut.cli.extend import extend
from bismut.cli.figure import figure
from bismut.cli.group import Commands
from bismut.cli.import_ import import_
from bismut.cli.info import info
from bismut.cli.listing import list_systems
from bismut.cli.log import common
from bismut.cli.merge import merge
from bismut.cli.new import new
from bismut.cli.plot import plot
from bismut.cli.repair import repair
from bismut.cli.resume import resume
from bismut.cli.run import run
from bismut.cli.show import show
from bismut.cli.terminal import make_readable
from bismut.cli.verify import verify
from bismut.cli.view import view
from bismut.errors import BismutWarning

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
# Name, command, and the line that `bismut --help` has for it.
for name, command, words in (
    ("list", list_systems, "what is in the gallery"),
    ("show", show, "equations, parameters and symmetries of one system"),
    ("run", run, "run a system, and keep what was observed in a folder"),
    ("resume", resume, "resume a run that was stopped or killed"),
    ("extend", extend, "more steps or trajectories of a run"),
    ("continue", extend, "the same as extend"),
    ("merge", merge, "combine parts that were run with --blocks into one run"),
    ("info", info, "what such a folder holds"),
    ("plot", plot, "pictures of what it holds"),
    ("export", export, "write it for other programs: GSD, XYZ, LAMMPS, NetCDF, tables"),
    ("import", import_, "a frame of another program as a start state"),
    ("view", view, "look at moving bodies in a browser"),
    ("verify", verify, "every claim of a scheme, measured; or a folder's data"),
    ("repair", repair, "recompute what is damaged in it"),
    ("check", check, "the mistakes in a run file, or what it would take"),
    ("new", new, "start a model of your own"),
    ("figure", figure, "the paper's figures and ours"),
    ("bench", bench, "measure speed"),
    ("doctor", doctor, "versions, devices, and a self-test"),
):
    app.command(name, short_help=words)(command)


def main() -> None:
    """Run the command that was typed."""
    make_readable()
    warnings.filterwarnings("ignore", category=BismutWarning)  # the header of a result and the certificate say it
    app(prog_name="bismut")
