"""Pages that show code: `{source}`text <src/bismut/x.py>`` links to one. They are no documents, so the search does not look into them."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.util.docutils import SphinxRole

ROOT = Path(__file__).parents[2]


class Source(SphinxRole):
    """A link to the page of a file or a folder of the repository."""

    def run(self):
        words, _, path = self.text.rpartition(" <")
        path = path.removesuffix(">").rstrip("/")
        page = self.env.app.builder.get_relative_uri(self.env.docname, f"source/{path}")
        inside = nodes.literal(words, words) if "." in words and " " not in words else nodes.Text(words)
        return [nodes.reference("", "", inside, internal=True, refuri=page)], []


def shown(app: Any):
    """The pages: those that were linked, and what lies in linked folders."""
    for path in json.loads(Path(app.config.linked_code).read_text()):
        file = ROOT / path
        inside = sorted(one for one in file.iterdir() if one.suffix == ".py") if file.is_dir() else [file]
        if file.is_dir():
            items = "".join(f'<li><a href="{file.name}/{one.name}.html">{escape(one.name)}</a></li>' for one in inside)
            yield f"source/{path}", {"title": path, "body": f"<h1>{escape(path)}</h1><ul>{items}</ul>"}, "page.html"
        for one in inside:
            name = one.relative_to(ROOT).as_posix()
            yield f"source/{name}", {"title": name, "body": f"<h1>{escape(name)}</h1>{_highlighted(one)}"}, "page.html"


def _highlighted(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(file.name)
    except ClassNotFound:
        lexer = get_lexer_for_filename("plain.txt")
    return highlight(text, lexer, HtmlFormatter(cssclass="highlight", linenos="inline", lineanchors="line", wrapcode=True))


def setup(app: Any) -> dict[str, Any]:
    app.add_config_value("linked_code", "", "html")
    app.add_role("source", Source())
    app.add_lexer("lammps", TextLexer)
    app.connect("html-collect-pages", shown)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
