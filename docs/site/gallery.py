"""A page for every gallery system: what it is, how it moves, and how it is run. Views share the program that draws them."""

from __future__ import annotations

import hashlib
import html
import json
import re
import sys
from importlib import resources
from pathlib import Path

import numpy as np

from bismut.ensembles import trajectory
from bismut.gallery import Entry, entries
from bismut.views import view

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from api import prose
from still import still

ROOT = Path(__file__).parents[2]
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
    return {"gallery.md": _index(found)} | {f"gallery/{name}.md": _page(one) for name, one in found.items()}


def _stamp(one: Entry) -> str:
    """What a picture and a view depend on; how a step is computed changes neither."""
    package, here = ROOT / "src" / "bismut", Path(__file__)
    own = Path(str(sys.modules[one.build.__module__].__file__))
    digest = hashlib.sha256()
    for file in (own, package / "drawing.py", *sorted((package / "views").glob("*.*")), here, here.with_name("still.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _draw(one: Entry, folder: Path) -> None:
    trial = one.trial()
    every = max(1, round(APART / trial.step))
    kept = trajectory(trial.scheme, trial.state, step=trial.step, steps=FRAMES * every, every=every, seed=1)
    shown = view(kept, system=one, frames=FRAMES, title=one.name)
    text = shown.html
    library = LIBRARY.search(text)
    assert library is not None, "a page of bm.view carries its library"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "library.js").write_text(
        'document.currentScript.insertAdjacentHTML("afterend", \'<script id="library" type="text/plain"></\' + "script>");\n'
        f'document.getElementById("library").textContent = "{library[1]}";\n'
    )
    (folder / f"{one.name}.html").write_text(LIBRARY.sub('<script src="library.js"></script>', text), encoding="utf-8")
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
    rows += [(f"symmetry {name}", what.words + ("" if name in kept else " (the noise breaks it)")) for name, what in system.symmetries.items()]
    rows += [(f"parameter `{name}`", _written(default)) for name, default in one.parameters.items()]
    table = "\n".join(f"| {name} | {value.replace('|', '&#124;')} |" for name, value in rows)
    facts = "\n".join(f"- {fact.statement}" for fact in one.facts)
    module = sys.modules[one.build.__module__]
    file = Path(str(resources.files("bismut"))).parent / (module.__name__.replace(".", "/") + ".py")
    return f"""# {first.rstrip(".")}

```{{raw}} html
<iframe class="view" src="../view/{one.name}.html" title="{html.escape(one.name)} in motion" loading="lazy"></iframe>
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
