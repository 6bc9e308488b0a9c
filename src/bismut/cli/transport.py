"""`bismut transport WHAT`: diffusion three ways, which must agree."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import command
from bismut.cli.measured import BATH, RUN, finish, numbers


@command("the diffusion tensor three ways: displacement, velocities, answer to a force")
@options.run_options(*BATH, *RUN)
def transport(
    what: options.What,
    lags: Annotated[int, typer.Option(metavar="N", help="how many lags are kept")] = 100,
    stride: Annotated[
        int | None, typer.Option("--every", metavar="N", help="steps between lags [all lags together are an eighth of the run]")
    ] = None,
    window: Annotated[float | None, typer.Option(metavar="TAU", help="time at which running estimates are read [8 correlation times]")] = None,
    picture: Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="draw the running estimates")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="draw them on a dark background")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
    **typed: Any,
) -> None:
    """Diffusion of displacements, angles and rotations: by Einstein's relation, by Green and Kubo, and by the answer to small forces on one noise.

    \b
    bismut transport pendulum --set noise=0 --temperature 1 --friction 1 --steps 20000 --trajectories 500 --burn-in 500 --figure output/pendulum.png

    Exit codes: 0 the ways agree, 1 they do not, 2 wrong usage.
    """
    from bismut.cli.runs.from_options import from_options
    from bismut.response import transport as measure

    ready = from_options(what, typed)
    measured = measure(ready.scheme, ready.start, lags=lags, every=stride, window=window, **numbers(ready))
    finish(measured, measured.agree, as_json, picture, dark)
