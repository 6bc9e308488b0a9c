"""`bismut free-energy WHAT`: a difference of free energies, from work in both directions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import command
from bismut.cli.measured import BATH, RUN, finish, numbers


@command("a difference of free energies, from work in both directions", name="free-energy")
@options.run_options(*BATH, *RUN)
def free_energy(
    what: options.What,
    parameter: Annotated[str, typer.Option("--move", metavar="NAME", help="the parameter that is moved")],
    begin: Annotated[float, typer.Option("--from", metavar="A", help="where it begins")],
    end: Annotated[float, typer.Option("--to", metavar="B", help="where it ends")],
    integrate: Annotated[bool, typer.Option(help="also by integration along the parameter")] = True,
    picture: Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="draw the distributions of work")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="draw them on a dark background")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
    **typed: Any,
) -> None:
    """F(B) − F(A): a parameter is moved forward and backward from equilibrium, and the work is that of the ledger. Jarzynski's average, where the
    distributions of work cross, Bennett's ratio, and integration along the parameter; with warnings where an average rests on too few trajectories.

    \b
    bismut free-energy pendulum --move stiffness --from 0.5 --to 2 --splitting Metropolised --step 0.2 --steps 20 --burn-in 200 --trajectories 2000

    Exit codes: 0 the ways agree, 1 they do not, or no two of them are reliable, 2 wrong usage.
    """
    from bismut.cli.runs.from_options import from_options
    from bismut.response import free_energy as measure

    ready = from_options(what, typed)
    ends = {"parameter": parameter, "between": (begin, end), "integrate": integrate}
    measured = measure(ready.scheme, ready.start, **ends, **numbers(ready))
    finish(measured, bool(measured.agree), as_json, picture, dark)
