"""A page for every gallery system: what it is, how it moves, and how it is run; and the system itself, running in the browser. So do the programs of
docs/live. All of them share the program that draws bodies."""

from __future__ import annotations

import hashlib
import html
import json
import re
import runpy
import sys
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from bismut.ensembles import trajectory
from bismut.gallery import Entry, entries
from bismut.views import page_of, view

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from api import prose
from still import still

from pages import live

ROOT = Path(__file__).parents[2]
TRAJECTORIES = 25  # of a page that runs, at first
FRAMES, APART = 160, 0.08  # of a view, and the time between two of them
LIBRARY = re.compile(r'<script id="library" type="text/plain">([^<]*)</script>')


def gallery(folder: Path) -> dict[str, str]:
    """Pages by their names; pictures and views go to `folder`, and are made again only if the package has changed."""
    found = entries()
    known = json.loads((folder / "stamp.json").read_text()) if (folder / "stamp.json").exists() else {}
    for name, one in found.items():
        stamp = _stamp(one)
        if known.get(name) != stamp or not (folder / f"{name}.html").exists():
            print(f"gallery: {name}", flush=True)
            _draw(one, folder)
            known[name] = stamp
            (folder / "stamp.json").write_text(json.dumps(known))
        program = _program_stamp()
        if known.get(f"{name}-run") != program or not (folder / f"{name}-run.html").exists():
            print(f"gallery: {name}, running", flush=True)
            _write(page_of(one, trajectories=TRAJECTORIES, seed=1).html, folder, f"{name}-run")
            known[f"{name}-run"] = program
            (folder / "stamp.json").write_text(json.dumps(known))
    for file in live():
        program = _program_stamp() + hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        if known.get(f"live-{file.stem}") != program or not (folder / f"live-{file.stem}.html").exists():
            print(f"live: {file.stem}", flush=True)
            _write(runpy.run_path(str(file))["page"].html, folder, f"live-{file.stem}")
            known[f"live-{file.stem}"] = program
            (folder / "stamp.json").write_text(json.dumps(known))
    return {"gallery.md": _index(found)} | {f"gallery/{name}.md": _page(one) for name, one in found.items()}


def _stamp(one: Entry) -> str:
    """What a picture and a view depend on; how a step is computed changes neither."""
    package, here = ROOT / "src" / "bismut", Path(__file__)
    own = Path(str(sys.modules[one.build.__module__].__file__))
    digest = hashlib.sha256()
    for file in (own, package / "drawing.py", *sorted((package / "views").glob("*.*")), here, here.with_name("still.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _program_stamp() -> str:
    """What a page that runs depends on: all of the package. Where the code stays the same, so does what LLVM made of it, which is kept."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "src" / "bismut").rglob("*")):
        if file.suffix in (".py", ".js", ".html"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _write(text: str, folder: Path, name: str) -> None:
    """A page whose program that draws is a file beside it; one without bodies has none, and stays as it is."""
    library = LIBRARY.search(text)
    folder.mkdir(parents=True, exist_ok=True)
    if library is not None and library[1]:
        (folder / "library.js").write_text(
            'document.currentScript.insertAdjacentHTML("afterend", \'<script id="library" type="text/plain"></\' + "script>");\n'
            f'document.getElementById("library").textContent = "{library[1]}";\n'
        )
        text = LIBRARY.sub('<script src="library.js"></script>', text)
    (folder / f"{name}.html").write_text(text, encoding="utf-8")


def _draw(one: Entry, folder: Path) -> None:
    trial = one.trial()
    every = max(1, round(APART / trial.step))
    kept = trajectory(trial.scheme, trial.state, step=trial.step, steps=FRAMES * every, every=every, seed=1)
    shown = view(kept, system=one, frames=FRAMES, title=one.name)
    _write(shown.html, folder, one.name)
    drawing = shown.scene.panels[0].drawing
    still(drawing, folder / f"{one.name}.png", frame=np.shape(drawing.x)[0] // 2)


def _index(found: dict[str, Entry]) -> str:
    cards = "\n".join(
        f'<a class="card" href="gallery/{name}.html"><img src="view/{name}.png" alt="" loading="lazy" width="480" height="360">'
        f"<strong>{html.escape(name)}</strong><span>{html.escape(one.title.rstrip('.'))}</span></a>"
        for name, one in found.items()
    )
    names = "\n".join(f"{name} <gallery/{name}>" for name in found)
    return f"""# Gallery

Systems that are ready to run, each with its equations, facts that are known of it exactly and are measured by the tests, and a picture that moves.
`bismut list` shows them, `bismut run NAME` runs one, and `bismut verify NAME` measures what its scheme claims.

```{{raw}} html
<div class="gallery">
{cards}
</div>
```

```{{toctree}}
:hidden:

{names}
```
"""


def _page(one: Entry) -> str:
    system = one.system()
    scheme = one.scheme(system)
    first, _, rest = one.physics.partition("\n")
    kept = tuple(system.symmetries) if one.kept is None else one.kept
    rows = [("space", f"{system.space}"), ("scheme", f"`{scheme.title}`, step {one.step:g}"), ("Wiener processes", f"{scheme.channels}")]
    if system.constraints:
        rows.insert(1, ("constraints", f"{system.constraints}"))
    rows += [(f"symmetry {name}", what.description + ("" if name in kept else " (the noise breaks it)")) for name, what in system.symmetries.items()]
    rows += [(f"parameter `{name}`", _written(default)) for name, default in one.parameters.items()]
    table = "\n".join(f"| {name} | {value.replace('|', '&#124;')} |" for name, value in rows)
    facts = "\n".join(f"- {fact.statement}" for fact in one.facts)
    module = sys.modules[one.build.__module__]
    file = Path(str(resources.files("bismut"))).parent / (module.__name__.replace(".", "/") + ".py")
    return f"""# {first.rstrip(".")}

```{{raw}} html
<iframe class="view" src="../view/{one.name}.html" title="{html.escape(one.name)} in motion" loading="lazy"></iframe>
<details class="run"><summary>Run it here, with sliders for its parameters, live plots and a seed of your own</summary>
<iframe class="view" src="../view/{one.name}-run.html" title="{html.escape(one.name)}, running" loading="lazy"></iframe>
<a href="../view/{one.name}-run.html">on a page of its own</a></details>
```

{prose(rest.strip(chr(10)))}

    bismut run {one.name} --observe energy,paths
    bismut view output/{one.name}

| | |
|---|---|
{table}

{"Known exactly, and measured:" if facts else ""}

{facts}

{{source}}`{file.relative_to(ROOT).name} <{file.relative_to(ROOT).as_posix()}>` · [all systems](../gallery.md)
"""


def _written(default: object) -> str:
    if isinstance(default, tuple | list):
        return ", ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in default)
    return "none" if default is None else str(default)
