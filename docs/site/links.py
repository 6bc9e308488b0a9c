"""Every link of the built site: pages, pictures, scripts and parts of pages that it leads to are there; what leads elsewhere is a whole address."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets: list[str] = []
        self.parts: set[str] = set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            if name in ("id", "name") and value:
                self.parts.add(value)


@cache
def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def broken(site: Path) -> list[str]:
    """What is wrong, a line each."""
    return [
        f"{file.relative_to(site)}: {target}: {why}"
        for file in sorted(site.rglob("*.html"))
        for target in _read(file).targets
        if (why := _wrong(file, target, site))
    ]


def _wrong(file: Path, target: str, site: Path) -> str:
    scheme, host, path, _, part = urlsplit(target)
    if scheme in ("http", "https"):
        return "" if "." in host else "no whole address"
    if scheme in ("data", "mailto", "blob"):
        return ""
    if scheme or host:
        return "a kind of address that nobody expects"
    there = (file.parent / unquote(path)).resolve() if path else file
    if not there.is_relative_to(site.resolve()):
        return "leads out of the site"
    if not there.is_file():
        return "is not there"
    if part and there.suffix == ".html" and unquote(part) not in _read(there).parts:
        return "the page has no such part"
    return ""
