"""`bismut sample model.py:log_density`: draws from a density on a space, a group or a surface."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli.group import FAILED, command, print_json


@command("draws from a density: model.py:log_density")
def sample(
    what: Annotated[str, typer.Argument(metavar="FILE.py:NAME", help="a function log_density(x) in a Python file that also has a `space`")],
    chains: Annotated[int, typer.Option(metavar="N", help="chains, all advanced together")] = 1024,
    draws: Annotated[int, typer.Option(metavar="N", help="draws kept of each")] = 1000,
    burn_in: Annotated[int, typer.Option(metavar="N", help="trajectories before the first draw, in which the chain is adapted")] = 400,
    thin: Annotated[int, typer.Option(metavar="N", help="trajectories between draws")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="of starts and noise")] = 0,
    kernel: Annotated[str, typer.Option(metavar="NAME", help="malt, hmc or metropolised")] = "malt",
    acceptance: Annotated[float | None, typer.Option(metavar="X", help="at which the step is chosen [0.8, and 0.95 for metropolised]")] = None,
    leapfrogs: Annotated[int | None, typer.Option(metavar="N", help="steps of a trajectory, instead of the adapted length")] = None,
    friction: Annotated[float | None, typer.Option(metavar="X", help="within a trajectory, instead of one over its length")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.nc", help="write the draws as netCDF, which ArviZ reads")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an existing file")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="the summary as JSON, for programs")] = False,
) -> None:
    """Draw from exp(log_density) with respect to the volume of `space`, both written in a Python file.

    \b
    bismut sample examples/spin.py:log_density --chains 256 --draws 500
    bismut sample examples/spin.py:log_density --out output/spin.nc --json

    The file may also hold `constraint`, `measure` and `ladder`, which are arguments of bm.sample.
    A netCDF file needs h5netcdf: pip install 'bismut[share]'.

    Exit codes: 0 the draws can be trusted as far as R̂ and effective sizes tell, 1 they say otherwise, 2 wrong usage, 130 interrupted.
    """
    from bismut.cli.runs.model import named_in_file
    from bismut.errors import BismutError
    from bismut.samplers import sample as draw

    if out is not None:
        _check_place(out, overwrite)
    path, module, log_density = named_in_file(what)
    if not hasattr(module, "space"):
        raise BismutError(f"{path} has no `space`, where the argument of {what.rpartition(':')[2]} lives: write space = bm.SO3(), say.")
    given: dict[str, Any] = {name: getattr(module, name) for name in ("constraint", "measure", "ladder") if hasattr(module, name)}
    drawn = draw(
        module.space,
        log_density,
        chains=chains,
        draws=draws,
        burn_in=burn_in,
        thin=thin,
        seed=seed,
        kernel=kernel,
        acceptance=acceptance,
        leapfrogs=leapfrogs,
        friction=friction,
        **given,
    )
    print_json(drawn.as_json()) if as_json else print(drawn, flush=True)  # first: what is drawn is told of whatever becomes of the file
    if out is not None:
        _write(out, drawn.tree)
    if not drawn.trusted:
        raise typer.Exit(FAILED)


def _check_place(out: Path, overwrite: bool) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    from importlib.util import find_spec

    from bismut.errors import BismutError

    if out.suffix != ".nc":
        raise BismutError(f"--out expects a netCDF file such as draws.nc, got {out}.")
    if find_spec("h5netcdf") is None:
        raise BismutError("A netCDF file needs h5netcdf: pip install 'bismut[share]'.")
    if out.exists() and not overwrite:
        raise BismutError(f"{out} exists. Give another name, or --overwrite.")
    above = next(folder for folder in out.absolute().parents if folder.exists())
    if not above.is_dir():
        raise BismutError(f"{above} is a file, so no folder {out.parent} can be made for the draws. Give another place.")
    if not os.access(above, os.W_OK):
        raise BismutError(f"Nothing can be written to {above}. Give another place for the draws.")


def _write(out: Path, tree: Any) -> None:
    """Write the draws, elsewhere if they cannot be written there; a file that is not where it was asked for is a failure."""
    from bismut.errors import WriteError
    from bismut.sharing.formats.netcdf import in_memory
    from bismut.store import keep_file

    try:
        keep_file(out, in_memory(tree))
    except WriteError as problem:
        print(f"bismut: {problem}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
