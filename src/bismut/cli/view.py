"""`bismut view RUN`: a page of moving bodies."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bismut.cli.group import command, print_json


@command("look at moving bodies in a browser")
def view(
    runs: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="folders of `bismut run ... --observe paths`; several are shown side by side")
    ],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="write the page here, and open nothing [RUN/pictures/view.html]")] = None,
    frames: Annotated[int, typer.Option(min=1, metavar="N", help="the maximum number of frames, evenly spaced in time")] = 200,
    trajectories: Annotated[str | None, typer.Option(metavar="N,N,...", help="which of the kept ones, counted from 0 [all, at most nine]")] = None,
    model: Annotated[str | None, typer.Option(metavar="FILE.py:NAME", help="the Python model of the run; without it only arrays are known")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="the file and its size as JSON; opens nothing")] = False,
) -> None:
    """Look at kept trajectories: one page with everything in it, which a browser opens without a network.

    \b
    bismut run heavy-top --observe energy,paths --steps 2000 --every 10 --out top
    bismut view top
    bismut view top --trajectories 0,1 --html top.html
    """
    from bismut.errors import BismutError
    from bismut.formatting import counted
    from bismut.views import view as shown

    try:
        chosen = None if trajectories is None else [int(word) for word in trajectories.split(",")]
    except ValueError:
        raise BismutError(f"--trajectories expects numbers such as 0,2, got {trajectories!r}.") from None
    system = None
    if model is not None:
        from bismut.cli.runs.model import from_file

        system = from_file(model).entry
    page = shown([str(run) for run in runs], frames=frames, trajectories=chosen, system=system, title=", ".join(run.name for run in runs))
    file, scene = page.save(html or runs[0] / "pictures" / "view.html"), page.scene
    size = file.stat().st_size
    if as_json:
        print_json({"file": file, "bytes": size, "trajectories": len(scene.panels), "frames": len(scene.times)})
        return
    print(f"{file}  ({size / 1e6:.1f} MB, {counted(len(scene.panels), 'trajectory', 'trajectories')}, {len(scene.times)} frames)")
    if html is None and sys.stdout.isatty():
        typer.launch(str(file.absolute()))
