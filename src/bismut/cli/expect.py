"""`bismut expect WHAT`: a mean after a time, to a tolerance; bias and statistical error apart."""

from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import command
from bismut.cli.measured import BATH, finish, of_quantity


@command("the mean of a quantity after a time, to a tolerance")
@options.run_options(*BATH, "scheme__name", "seed")
def expect(
    what: options.What,
    of: Annotated[str, typer.Option(metavar="QUANTITY", help="what is averaged: energy, temperature, q, p, ...")] = "energy",
    time: Annotated[float, typer.Option(metavar="T", help="the time after which it is evaluated")] = 1.0,
    tolerance: Annotated[float, typer.Option(metavar="X", help="of the mean: bias + 2 standard errors")] = 1e-3,
    largest: Annotated[float | None, typer.Option("--step", metavar="H", help="the largest step [found]")] = None,
    most: Annotated[float, typer.Option(metavar="N", help="steps of all trajectories together, at most")] = 1e9,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
    **typed: Any,
) -> None:
    """The mean of a quantity after a time, to a tolerance. The bias of the step is measured by runs at h and h/2 on one noise and extrapolated by the
    weak order; steps are halved and trajectories added until bias and statistical error fit.

    \b
    bismut expect kubo-oscillator --of energy --time 6 --tolerance 0.01
    bismut expect pendulum --temperature 1 --friction 1 --of energy --time 2

    Exit codes: 0 within the tolerance, 1 not, 2 wrong usage.
    """
    from bismut.response import expectation

    ready, function = of_quantity(what, typed, of)
    settings = {"time": time, "tolerance": tolerance, "step": largest, "most": most, "seed": int(ready.document["seed"])}
    estimate = expectation(ready.scheme, ready.start, of=function, t0=float(ready.document["t0"]), **settings)
    finish(estimate, estimate.met, as_json)
