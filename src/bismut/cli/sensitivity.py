"""`bismut sensitivity WHAT`: how the mean of a quantity moves with parameters."""

from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import FAILED, command, print_json


@command("how the mean of a quantity moves with parameters")
@options.run_options(
    "system__parameters",
    "scheme__name",
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
    from bismut.cli.runs.from_options import from_options
    from bismut.ensembles import Watcher
    from bismut.errors import BismutError
    from bismut.response import sensitivity as measure

    ready = from_options(what, {**typed, "observe": [of]})
    (function,) = ready.observe.values()
    if isinstance(function, Watcher):
        raise BismutError(f"--of takes one quantity, a function of a state such as energy, not the observer {of}.")
    numbers: dict[str, Any] = {name: int(ready.document[name]) for name in ("steps", "trajectories", "seed", "burn_in")}
    settings = {"step": float(ready.document["step"]), "t0": float(ready.document["t0"]), "equilibrium": equilibrium, "method": method}
    measured = measure(ready.scheme, ready.start, of=function, parameters=by or None, **settings, **numbers)
    print_json(measured.as_json()) if as_json else print(measured)
    if not measured.agree:
        raise typer.Exit(FAILED)
