"""`bismut sensitivity WHAT`: how the mean of a quantity moves with parameters."""

from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import command
from bismut.cli.measured import BATH, RUN, finish, numbers, of_quantity


@command("how the mean of a quantity moves with parameters")
@options.run_options(*BATH, "scheme__name", *RUN)
def sensitivity(
    what: options.What,
    of: Annotated[str, typer.Option(metavar="QUANTITY", help="whose mean: energy, temperature, q, p, ...")] = "energy",
    by: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="a parameter, temperature or friction; several times for several [all of the system's]")
    ] = None,
    equilibrium: Annotated[bool, typer.Option("--equilibrium", help="average over time after the burn-in, in place of the last state")] = False,
    method: Annotated[str, typer.Option(metavar="NAME", help="auto, pathwise, likelihood, covariance or adjoint")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
    **typed: Any,
) -> None:
    """d⟨O⟩/dθ after so many steps, or in equilibrium. All estimators that apply are tried, and the one of the smallest variance × cost runs.

    \b
    bismut sensitivity pendulum --of energy --by stiffness --by temperature --equilibrium --steps 2000 --burn-in 200 --trajectories 500

    Exit codes: 0 the estimators agree, 1 they do not, 2 wrong usage.
    """
    from bismut.response import sensitivity as measure

    ready, function = of_quantity(what, typed, of)
    settings = {"t0": float(ready.document["t0"]), "equilibrium": equilibrium, "method": method}
    measured = measure(ready.scheme, ready.start, of=function, parameters=by or None, **settings, **numbers(ready))
    finish(measured, measured.agree, as_json)
