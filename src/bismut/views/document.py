"""One page that holds a scene and everything that draws it: it opens with the network off.

The drawing is done by three.js, which the package k3d brings along (`ThreeJsProvider` of its standalone file). That file is read where it is
installed when a page is written, and goes into the page as it is, compressed.

Libraries that write pages do not fit: k3d and plotly keep a mesh or a matrix for each body and frame (13 MB and more for 1000 bodies × 200 frames),
viser pins rich below 15, pythreejs carries the three.js of 2018, py3Dmol none at all.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from functools import cache
from html import escape
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from bismut.errors import BismutError
from bismut.palette import DARK, LIGHT, Palette
from bismut.views.scene import Scene


def page(scene: Scene) -> str:
    """The page of a scene as text."""
    return document("page.html", scene.title, SCENE=inline(scene.data()), SCRIPT=file("bodies.js") + file("page.js"))


def document(template: str, title: str, library: bool = True, **parts: str) -> str:
    """A page as text: a file with places @NAME@, and what goes there. Without `library` it has no three.js, and draws no bodies."""
    code, licence = _library() if library else ("", "")
    parts |= {
        "TITLE": escape(title),
        "LICENCE": licence,
        "LIBRARY": code,
        "LIGHT": _variables(LIGHT),
        "DARK": _variables(DARK),
        "PALETTES": inline({"light": _colours(LIGHT), "dark": _colours(DARK)}),
    }
    return re.sub("@([A-Z]+)@", lambda place: parts[place[1]], file(template))  # in one pass, so that a title may say @SCENE@


def file(name: str) -> str:
    """A file of this package."""
    return (resources.files("bismut.views") / name).read_text(encoding="utf-8")


def _colours(palette: Palette) -> dict[str, Any]:
    return palette._asdict() | {"series": palette.series[:6]}  # ink is for marks on bodies


def _variables(palette: Palette) -> str:
    return " ".join(f"--{name}: {value};" for name, value in palette._asdict().items() if isinstance(value, str))


def inline(data: Any) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _library() -> tuple[str, str]:
    """k3d's standalone file, compressed, as text; and its licence."""
    try:
        package = metadata.distribution("k3d")
    except metadata.PackageNotFoundError as problem:
        raise BismutError(
            "A page of moving bodies needs k3d, which is not installed here: pip install 'bismut[view]', or pip install k3d."
        ) from problem
    file = Path(str(package.locate_file("k3d/static/standalone.js")))
    if not file.is_file():
        raise BismutError(
            f"k3d {package.version} has no k3d/static/standalone.js, from which pages are drawn. Install k3d 3.2: pip install 'k3d==3.2.*'."
        )
    notices = [str(path) for path in package.files or () if path.name.startswith("LICENSE")]
    said = "\n".join(Path(str(package.locate_file(notice))).read_text(encoding="utf-8") for notice in notices)
    licence = f"Contains k3d {package.version} and, in it, three.js (MIT).\n{said}".replace("--", "- -")
    return b64encode(gzip.compress(file.read_bytes(), 9, mtime=0)).decode(), licence
