"""`bismut transport WHAT`: diffusion, or the time integral of any flux, by ways that must agree."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import command
from bismut.cli.measured import BATH, RUN, finish, numbers, of_quantity
from bismut.errors import BismutError


@command("the diffusion tensor four ways: displacement, velocities, answers to a force and to one of a step")
@options.run_options(*BATH, *RUN)
def transport(
    what: options.What,
    lags: Annotated[int, typer.Option(metavar="N", help="how many lags are kept")] = 100,
    stride: Annotated[
        int | None, typer.Option("--every", metavar="N", help="steps between lags [all lags together are an eighth of the run]")
    ] = None,
    flux: Annotated[str | None, typer.Option(metavar="QUANTITY", help="a quantity in place of velocities, such as pressure_tensor")] = None,
    entry: Annotated[
        list[str] | None, typer.Option(metavar="I,J", help="a number of the flux; several times for several samples of one flux")
    ] = None,
    part: Annotated[str | None, typer.Option(metavar="I,J,...", help="components of the displacement of each body, counted from 0 [all]")] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="W,W,...", help="the sum of displacements with these weights, one for each body, as for mutual diffusion")
    ] = None,
    scale: Annotated[float, typer.Option(metavar="X", help="a factor on everything: V/kT for a viscosity")] = 1.0,
    response: Annotated[bool, typer.Option(help="also the answer to small forces; never of a flux")] = True,
    window: Annotated[float | None, typer.Option(metavar="TAU", help="time at which running estimates are read [8 correlation times]")] = None,
    picture: Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="draw the running estimates")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="draw them on a dark background")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
    **typed: Any,
) -> None:
    """Diffusion of displacements, angles and rotations: by Einstein's relation, by Green and Kubo, and by answers to small forces on one noise.
    With --flux the integral of the correlation of a quantity: a viscosity, say.

    \b
    bismut transport pendulum --set noise=0 --temperature 1 --friction 1 --steps 20000 --trajectories 500 --burn-in 500 --figure output/pendulum.png
    bismut transport fluid.py:system --temperature 0.722 --rate 0.02 --flux pressure_tensor --entry 0,1 --entry 0,2 --entry 1,2 --scale 177.2

    Exit codes: 0 the ways agree, 1 they do not, 2 wrong usage.
    """
    from bismut.cli.runs.fluxes import flux_of, part_of
    from bismut.cli.runs.from_options import from_options
    from bismut.response import transport as measure

    if entry and flux is None:
        raise BismutError("--entry picks numbers of a flux: give --flux QUANTITY, or --part for components of a displacement.")
    ready, quantity = (from_options(what, typed), None) if flux is None else of_quantity(what, typed, flux, "--flux")
    followed = {"flux": flux_of(quantity, entry), "part": part_of(ready.scheme.space, part, weights), "scale": scale, "response": response}
    measured = measure(ready.scheme, ready.start, lags=lags, every=stride, window=window, **followed, **numbers(ready))
    finish(measured, bool(measured.agree), as_json, picture, dark)
