"""`bismut free-energy WHAT`: a difference of free energies, from work in both directions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import FAILED, command, print_json


@command("a difference of free energies, from work in both directions", name="free-energy")
@options.run_options(
    "system__parameters",
    "bath__temperature",
    "bath__friction",
    "bath__rate",
    "bath__mobility",
    "bath__splitting",
    "start",
    "step",
    "steps",
    "trajectories",
    "seed",
    "burn_in",
)
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

    Exit codes: 0 the ways agree, 1 they do not, 2 wrong usage.
    """
    from bismut.cli.runs.from_options import from_options
    from bismut.response import free_energy as measure

    ready = from_options(what, typed)
    numbers: dict[str, Any] = {name: int(ready.document[name]) for name in ("steps", "trajectories", "seed", "burn_in")}
    ends = {"parameter": parameter, "between": (begin, end), "integrate": integrate}
    measured = measure(ready.scheme, ready.start, step=float(ready.document["step"]), **ends, **numbers)
    if picture is not None:
        measured.figure(picture, dark=dark)
    print_json(measured.as_json()) if as_json else print(measured)
    if not measured.agree:
        raise typer.Exit(FAILED)
