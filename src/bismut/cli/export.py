"""`bismut export RUN --to FORMAT`: what a run folder holds, for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from bismut.cli.group import command, completion, parsed_integer, print_json
from bismut.registry import FORMATS


@command("write a run for other programs: GSD, XYZ, LAMMPS, NetCDF, tables")
def export(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="a folder written by `bismut run`")],
    to: Annotated[str, typer.Option(metavar="FORMAT", help="{formats}", autocompletion=completion(FORMATS.names))],
    out: Annotated[Path | None, typer.Option(metavar="PLACE", help="file, or folder of tables [next to the run, with its name]")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="observers, or final for the last states; may be repeated")] = None,
    trajectory: Annotated[int | None, typer.Option(parser=parsed_integer, metavar="N", help="one of the kept trajectories [all of them]")] = None,
    at: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="of a sweep, the value of a parameter; may be repeated")] = None,
    species: Annotated[str | None, typer.Option(metavar="NAMES", help="a name for each body, separated by commas, such as O,H,H")] = None,
    sites: Annotated[
        str | None, typer.Option(metavar="molecules", help="the atoms of molecules, with their names and bonds, in place of a point for each body")
    ] = None,
    units: Annotated[str | None, typer.Option(metavar="UNITS", help="of the run: molecular, si, or a unit of length such as nm [unknown]")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace what exists")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="the files as JSON")] = False,
) -> None:
    """Write a run in a format that other programs read.

    \b
    gsd, extxyz, lammpstrj   moving bodies: species, masses, moments, positions, velocities, orientations, box, time; a file for each
                             trajectory that was kept (--observe paths), else the last state of the first one;
                             with --units in the units of the format
    netcdf                   everything that was observed, with labelled axes
    csv, parquet             the same as tables, one for each observer, in a folder; with --only, one file

    \b
    bismut run magnetic-dipoles --observe energy,paths --out dipoles
    bismut export dipoles --to gsd
    bismut export dipoles --to csv --only energy --out energy.csv
    bismut export liquid --to gsd --sites molecules --units molecular
    """
    from bismut.cli.runs.from_options import assignments
    from bismut.errors import BismutError
    from bismut.sharing import export as write

    chosen = FORMATS[to]
    folder = chosen.folder
    values = assignments("--at", at, "stiffness=0.5")
    for name, value in values.items():
        if not isinstance(value, int | float):
            raise BismutError(f"--at expects a number for {name}, got {value!r}.")
    if sites not in (None, "molecules"):
        raise BismutError(f"--sites expects molecules, the sites that the potential of the run acts between, got {sites!r}. bm.export takes any.")
    place = out or run.with_name(f"{run.absolute().name}-{to}" if folder else f"{run.absolute().name}{chosen.endings[0]}")
    names = None if species is None else species.split(",")
    moving = {"trajectory": trajectory, "species": names, "sites": sites, "units": units}
    files = write(run, place, to=to, only=only or (), at=values, overwrite=overwrite, **moving)
    if as_json:
        print_json([str(file) for file in files])
    for file in () if as_json else files:
        print(file)
