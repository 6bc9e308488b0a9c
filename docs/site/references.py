"""What is named in code becomes a link: public names of bismut to the page of the API, and names of JAX, xarray and others to their documentation.

There is no network where this is built, so the inventories that intersphinx would fetch are a table here, of the names that pages use. A name of
those packages that is not in the table is a warning, and so an error. Our own names are in objects.inv, for projects that refer to us.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

log = logging.getLogger(__name__)

_JAX, _XARRAY = "https://docs.jax.dev/en/latest/_autosummary/", "https://docs.xarray.dev/en/stable/generated/"
_FUNCTIONS = """
  Array custom_jvp debug.print grad jit make_jaxpr vmap random.normal lax.reduce_window lax.scan lax.top_k lax.while_loop scipy.linalg.expm
  scipy.interpolate.RegularGridInterpolator scipy.ndimage.map_coordinates
  scipy.special.betainc scipy.special.erf scipy.special.gammainc scipy.special.gammaln scipy.special.i0
"""
ELSEWHERE = {
    **{f"jax.{name}": f"{_JAX}jax.{name}.html" for name in _FUNCTIONS.split()},
    "jax.numpy": "https://docs.jax.dev/en/latest/jax.numpy.html",
    "xarray.DataArray": f"{_XARRAY}xarray.DataArray.html",
    "xarray.DataTree": f"{_XARRAY}xarray.DataTree.html",
    "xarray.Dataset": f"{_XARRAY}xarray.Dataset.html",
    "zarr.storage.ZipStore": "https://zarr.readthedocs.io/en/stable/api/zarr/storage/",
    "logging": "https://docs.python.org/3/library/logging.html",
}
SHORT = {"lax.scan": "jax.lax.scan", "vmap": "jax.vmap", "custom_jvp": "jax.custom_jvp"}
OTHERS = re.compile(r"(?:jax|xarray|zarr)(?:\.\w+)+")
OURS = re.compile(r"(bm\.)?(\w+)(\(.*\))?", re.DOTALL)


class Named(SphinxPostTransform):
    """Links from `code` in the text."""

    default_priority = 500

    def run(self, **_: Any) -> None:
        if self.app.builder.format != "html":
            return
        anchors: dict[str, str] = getattr(self.env, "bismut_names", {})
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext()
            inside = any(isinstance(above, nodes.reference | nodes.title) for above in _above(literal))
            if not inside and (place := _elsewhere(text, literal) or self._ours(text, anchors)):
                link = nodes.reference("", "", internal="://" not in place, refuri=place, classes=["named"])
                literal.replace_self(link)
                link += literal

    def _ours(self, text: str, anchors: dict[str, str]) -> str | None:
        """`bm.name`, `Name`, `name(...)`; a plain word such as `energy` may mean something else."""
        found = OURS.fullmatch(text)
        if found is None or found[2] not in anchors or not (found[1] or found[3] or found[2][0].isupper()):
            return None
        if self.env.docname == "api":
            return f"#{anchors[found[2]]}"
        return f"{self.app.builder.get_relative_uri(self.env.docname, 'api')}#{anchors[found[2]]}"


def _above(node: nodes.Node):
    while (node := node.parent) is not None:
        yield node


def _elsewhere(text: str, node: nodes.Node) -> str | None:
    whole = SHORT.get(text, text)
    called = OTHERS.match(whole)
    name = called[0] if called else whole
    if called and name not in ELSEWHERE:
        log.warning("`%s` is not in the table of docs/site/references.py", name, location=node)
    return ELSEWHERE.get(name)


def noted(app: Any, document: nodes.document) -> None:
    """The names of the API page, for links and for objects.inv."""
    if app.env.docname != "api":
        return
    found = {}
    for section in document.findall(nodes.section):
        anchor = next((one for one in section["ids"] if one.startswith(("class-", "bm-"))), None)
        if anchor:
            name = section[0].astext()
            found[name] = anchor
            kind = "class" if anchor.startswith("class-") else "function"
            app.env.domains["py"].note_object(f"bismut.{name}", kind, anchor, location=section)
    app.env.bismut_names = found


def setup(app: Any) -> dict[str, Any]:
    app.add_post_transform(Named)
    app.connect("doctree-read", noted)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
