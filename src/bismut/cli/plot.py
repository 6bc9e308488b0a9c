"""`bismut plot RUN`: pictures of what a run folder holds."""

from pathlib import Path
from typing import Annotated

import typer

from bismut.cli.group import command, print_json


@command("pictures of what the folder of a run holds")
def plot(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="a folder written by `bismut run`")],
    what: Annotated[list[str] | None, typer.Argument(metavar="[PICTURE]...", help="names of pictures [all]")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="folder for the pictures [RUN/pictures]")] = None,
    form: Annotated[str, typer.Option("--format", metavar="NAME", help="png, pdf or svg")] = "png",
    dark: Annotated[bool, typer.Option("--dark", help="on a dark background, for screens and slides")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="list what can be drawn, and draw nothing")] = False,
    animated: Annotated[bool, typer.Option("--animate", help="an animation of the kept trajectories instead; --format gif or mp4")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="names and files as JSON")] = False,
) -> None:
    """Draw what was observed: energy, temperature and momenta over time, histograms, correlations, sections, and from kept trajectories and last
    states phase portraits and orientations on the sphere.

    \b
    bismut run heavy-top --observe energy,vertical,orientation,paths --out top
    bismut plot top --list
    bismut plot top energy paths-sphere --format svg
    """
    import sys
    from functools import partial

    from bismut.errors import BismutError, nearest
    from bismut.figures.certificate import fill, size_of
    from bismut.figures.runs import Picture, pictures, save_picture
    from bismut.figures.style import check_installed
    from bismut.store import read_run

    if animated:
        from bismut.figures.runs.animation import animate
        from bismut.views import view

        check_installed()
        kind = "gif" if form == "png" else form
        file = animate(view(run, frames=100).scene, (out or run / "pictures") / f"paths.{kind}", dark=dark)
        print_json({"paths": file}) if as_json else print(f"{'paths':24} {file}")
        return
    reader = read_run(run)
    if reader.stored.state != "complete":
        print(f"bismut: {run} is not complete: {reader.stored}.", file=sys.stderr)
    known = pictures(reader.statistics, reader.full_provenance["run"], reader.full_provenance.get("labels", {}))
    if reader.certificate is not None:
        report = reader.certificate
        known["certificate"] = Picture(report.headline, partial(fill, report=report), size_of(report))
    if only_list:
        if as_json:
            print_json({name: picture.title for name, picture in known.items()})
        for name, picture in {} if as_json else known.items():
            print(f"{name:24} {picture.title}")
        return
    for name in what or ():
        if name not in known:
            raise BismutError(f"This run has no picture {name!r}. {nearest(name, known)}")
    check_installed()
    files = {
        name: save_picture(known[name], name, out or run / "pictures", form, dark)
        for name in what or [name for name, picture in known.items() if picture.usual]
    }
    left = 0 if what else len(known) - len(files)
    if left:
        print(f"bismut: {left} more pictures of single values of the sweep are drawn when named; --list shows them.", file=sys.stderr)
    if as_json:
        print_json(files)
    for name, file in {} if as_json else files.items():
        print(f"{name:24} {file}")
