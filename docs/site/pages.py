"""The pages of the repository as Sphinx reads them, in a folder of their own: nothing that is generated lies among what is written.

README.md becomes the first page, docs/ the rest; links between files become links between pages, and those to code lead to pages that show it.
The order of the sidebar is that of docs/README.md, so a page that is not listed there is in no sidebar, and a test says so.
"""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "build" / "site-source"
RENAMED = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "docs/README.md": "contents.md",
}
# A link or a picture in Markdown, outside of code: its text, its target, and the part of a page.
LINK = re.compile(r"(!?)\[((?:[^\[\]`]|`[^`\n]*`)*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
# A paragraph that is one link to a program that makes a page that runs: docs/live/NAME.py.
LIVE = re.compile(r"^\[([^\[\]]+)\]\(([^)\s#]*live/(\w+)\.py)\)\.?$", re.MULTILINE)
CODE = re.compile(r"(^```.*?^```|^    [^\n]*$)", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)


def pages() -> dict[str, str]:
    """Files of the repository, by their paths in it, and what they are called in the site."""
    files = [ROOT / name for name in RENAMED] + sorted((ROOT / "docs").rglob("*.md")) + sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    paths = [file.relative_to(ROOT).as_posix() for file in files if not file.is_relative_to(ROOT / "docs" / "site")]
    return {path: RENAMED.get(path, path.removeprefix("docs/")) for path in paths}


def listed(contents: str) -> dict[str, list[str]]:
    """Sections of docs/README.md, and the files that each links to, by their paths in the repository; code is no page."""
    found = {}
    for title, body in SECTION.findall(contents):
        targets = [os.path.normpath(Path("docs") / target) for _, _, target, _ in LINK.findall(body) if target and "://" not in target]
        found[title] = [target for target in dict.fromkeys(targets) if target.endswith((".md", ".ipynb"))]
    return found


def write(generated: dict[str, str]) -> list[str]:
    """Write all pages; `generated` holds further ones. Returns the files of code that they link to."""
    known, texts = pages(), dict(generated)
    linked = set(re.findall(r"\{source\}`[^`<]* <([^>]+)>`", "".join(generated.values())))
    for path, name in known.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        texts[name] = text if name.endswith(".ipynb") else rewritten(text, path, known, linked)
    contents = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for title, paths in listed(contents).items():
        texts["index.md"] += _toctree(title, [known[path] for path in paths if path in known])
        if title == "Tutorial":
            texts["index.md"] += _toctree("Gallery", ["gallery.md"])
    texts["contents.md"] = f"---\norphan: true\n---\n{texts['contents.md']}"
    wanted = {SOURCE / name for name in texts}
    for name, text in texts.items():
        _changed(SOURCE / name, text.encode())
    for picture in (ROOT / "docs" / "pictures").glob("*.png"):
        wanted.add(SOURCE / "pictures" / picture.name)
        _changed(SOURCE / "pictures" / picture.name, picture.read_bytes())
    for file in SOURCE.rglob("*"):
        if file.is_file() and file not in wanted:
            file.unlink()
    return sorted(linked)


def _toctree(title: str, names: list[str]) -> str:
    """A part of the sidebar."""
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {title}", "", *(name.rpartition(".")[0] for name in names), "```", ""])


def rewritten(text: str, path: str, known: dict[str, str], linked: set[str]) -> str:
    """A page with links that lead somewhere in the site; those to code are noted in `linked`."""
    if path == "docs/api.md":
        text = re.sub(r'<a id="([\w-]+)"></a>', lambda found: f"({found[1].lower()})=", text)
    text = text.replace("<!-- beside -->", ":::::{container} beside").replace("<!-- end -->", ":::::")
    text = LIVE.sub(lambda found: _embedded(found, path, known, linked), text)
    parts = CODE.split(text)
    parts[::2] = [LINK.sub(lambda found: _link(found, path, known, linked), part) for part in parts[::2]]
    return "".join(parts)


def live() -> list[Path]:
    """Programs that make pages that run."""
    return sorted((ROOT / "docs" / "live").glob("*.py"))


def _embedded(found: re.Match[str], path: str, known: dict[str, str], linked: set[str]) -> str:
    """The page itself, where Markdown has a link to the program that makes it."""
    words, target, name = html.escape(found[1]), os.path.normpath(Path(path).parent / found[2]), found[3]
    if not (ROOT / target).exists():
        raise SystemExit(f"{path} links to {found[2]}, which is not there.")
    linked.add(target)
    page = os.path.relpath(f"view/live-{name}.html", Path(known[path]).parent)
    frame = f'<iframe class="view" src="{page}" title="{words}" loading="lazy"></iframe>'
    return f"```{{raw}} html\n{frame}\n```\n\n{{source}}`{found[1].replace('`', '')} <{target}>`"


def _link(found: re.Match[str], path: str, known: dict[str, str], linked: set[str]) -> str:
    picture, words, target, part = found[1], found[2], found[3], (found[4] or "").lower()
    if "://" in target or target.startswith("mailto:"):
        return found[0]
    if not target:
        return f"{picture}[{words}]({part})"
    there = os.path.normpath(Path(path).parent / target)
    here = Path(known[path]).parent
    if there in known:
        return f"{picture}[{words}]({os.path.relpath(known[there], here)}{part})"
    if there.startswith("docs/pictures/"):
        return f"{picture}[{words}]({os.path.relpath(there.removeprefix('docs/'), here)})"
    if not (ROOT / there).exists():
        raise SystemExit(f"{path} links to {target}, which is not there.")
    linked.add(there)
    return f"{{source}}`{words.replace('`', '')} <{there}>`"


def _changed(file: Path, content: bytes) -> None:
    """Write a file unless it is what it should be: Sphinx reads again what is new."""
    if not file.exists() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
