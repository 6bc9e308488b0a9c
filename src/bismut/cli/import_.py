"""`bismut import FILE`: a frame of another program as a start state."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli.group import command, print_json, system_names


@command("a frame of another program as a start state", "import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a GSD or extended XYZ file")],
    frame: Annotated[int, typer.Option(metavar="N", help="which frame; negative numbers count from the end")] = -1,
    system: Annotated[str | None, typer.Option(metavar="NAME", help="a system of the gallery to start there", autocompletion=system_names)] = None,
    parameters: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="a parameter of the system; may be repeated")] = None,
    temperature: Annotated[float | None, typer.Option(metavar="KT", help="draw momenta at this temperature instead of taking the file's")] = None,
    out: Annotated[Path | None, typer.Option(metavar="RUN.toml", help="write a run file that starts there")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the run file")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="what the frame holds as JSON")] = False,
) -> None:
    """Report what a frame holds; with --system and --out write a run file that starts there, its numbers written out.

    \b
    bismut import dipoles-0.gsd
    bismut import dipoles-0.gsd --system magnetic-dipoles --set bodies=3 --out again.toml
    bismut run again.toml

    Any run, also of a Python model, can start from a frame: bismut run my_model.py:system --start file=dipoles-0.gsd --start frame=-1
    """
    from bismut.errors import BismutError
    from bismut.sharing import read_frame

    if (system is None) is not (out is None):
        raise BismutError(
            "--system and --out belong together. For systems that are not in the gallery: bismut run my_model.py:system --start file=FILE"
        )
    summary = _summary(read_frame(file, frame))
    if as_json:
        print_json(summary)
    else:
        print("\n".join(f"{name:14} {value}" for name, value in summary.items()))
    if system is not None and out is not None:
        _write(system, parameters, {"file": str(file), "frame": frame, "temperature": temperature}, out, overwrite)
        if not as_json:
            print(f"\nbismut run {out}")


def _summary(frames: Any) -> dict[str, Any]:
    has = {"velocities": frames.v, "orientations": frames.q, "masses": frames.mass, "moments": frames.moments}
    known = [name for name, value in has.items() if value is not None]
    counts = {name: frames.species.count(name) for name in frames.kinds}
    return {
        "bodies": len(frames.species),
        "species": ", ".join(f"{count} {name}" for name, count in counts.items()),
        "time": float(frames.times[0]),
        "step": int(frames.steps[0]),
        "box": "open" if frames.box is None else ", ".join(f"{side:g}" for side in frames.box.lengths),
        "holds": ", ".join(["positions", *known]),
    }


def _write(system: str, parameters: list[str] | None, start: dict[str, Any], out: Path, overwrite: bool) -> None:
    from bismut.cli.runs.execute import configuration
    from bismut.cli.runs.from_options import assignments, from_changes
    from bismut.errors import BismutError

    if out.exists() and not overwrite:
        raise BismutError(f"--out: {out} exists already. Choose another name, or replace it with --overwrite.")
    changes: dict[str, Any] = {"start": {key: value for key, value in start.items() if value is not None}}
    if parameters:
        named = assignments("--set", parameters, "inertia=1,2,3")
        changes["system"] = {"parameters": {name.replace("-", "_"): value for name, value in named.items()}}
    ready = from_changes(system, changes)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(configuration(ready), encoding="utf-8")
