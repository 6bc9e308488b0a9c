"""`bismut page NAME`: a page that runs a system in a browser."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import command, print_json

_SETUP = """import jax; jax.config.update("jax_enable_x64", True)
import bismut as bm
from bismut.cli.runs.from_options import from_changes

prepared = from_changes({what!r}, {changes!r})
scheme, start{noise} = prepared.scheme, prepared.start{path}"""
_TABLES = ("system", "scheme", "bath", "start", "path")
_NUMBERS = ("seed", "step", "steps", "trajectories", "burn_in", "t0")  # what starts and paths may depend on


@command("a page that runs a system in a browser, without Python")
@options.run_options(
    *("system__parameters", "scheme__name", "scheme__retraction", "bath__temperature", "bath__friction", "bath__rate", "bath__mobility"),
    *("bath__splitting", "start", "step", "trajectories", "seed", "t0"),
)
def page(
    what: options.What,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="write the page here, and open nothing [output/NAME.html]")] = None,
    observe: Annotated[str | None, typer.Option(metavar="NAME,...", help="what is plotted [energy, momentum maps, invariants]")] = None,
    large: Annotated[bool, typer.Option("--large", help="write it however large its code is, and however long a step takes")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="the file and its size as JSON; opens nothing")] = False,
    **typed: Any,
) -> None:
    """Write one file that runs the program as WebAssembly in a browser: bodies, plots, and a slider for every parameter. It needs no Python and no
    network, and its numbers are those of `bismut run --arithmetic plain`, to the bit.

    \b
    bismut page heavy-top
    bismut page heavy-top --trajectories 100 --html top.html
    bismut page magnetic-dipoles --set bodies=8 --temperature 0.5 --rate 1
    bismut page my_model.py:system --observe energy,q
    """
    from bismut.cli.runs.from_options import from_options
    from bismut.cli.runs.quantities import quantity
    from bismut.views import page as written

    ready = from_options(what, typed)
    name = Path(ready.model.entry.name.partition(":")[0]).stem
    source = ready.document["system"]["name"] if what.endswith(".toml") else what  # the script needs no run file
    changes = {key: ready.document[key] for key in (*_TABLES, *_NUMBERS) if key in ready.document}
    own = {} if ready.path is None else {"noise": ", noise", "path": ", prepared.path"}
    asked = None if observe is None else {one.strip(): quantity(one.strip(), ready.scheme, ready.model.observables) for one in observe.split(",")}
    noise: dict[str, Any] = {"seed": ready.document["seed"]} if ready.path is None else {"noise": ready.path}
    page_file = written(
        ready.scheme,
        ready.start,
        step=float(ready.document["step"]),
        trajectories=int(typed.get("trajectories") or 1),
        t0=float(ready.document.get("t0", 0.0)),
        observe=asked,
        picture=ready.model.entry.picture,
        title=name,
        setup=_SETUP.format(what=source, changes=changes, **{"noise": "", "path": ""} | own),
        large=large,
        path=html or Path("output") / f"{name}.html",
        **noise,
    )
    file = html or Path("output") / f"{name}.html"
    size = file.stat().st_size
    if as_json:
        print_json(
            {
                "file": file,
                "bytes": size,
                "wasm_bytes": page_file.code_size,
                "sliders": len(page_file.program["controls"]),
                "undrawn": page_file.undrawn,
            }
        )
        return
    print(f"{file}  ({size / 1e6:.1f} MB, {page_file.code_size / 1e3:.0f} kB of WebAssembly, {len(page_file.program['controls'])} sliders)")
    if page_file.undrawn is not None:
        print(page_file.undrawn)
    if html is None and sys.stdout.isatty():
        typer.launch(str(file.absolute()))
