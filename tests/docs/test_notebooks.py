"""Every notebook runs, prints what is stored in it, and stays small. Numbers agree as on pages; pictures are there, whatever their pixels."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from tests.docs.test_pages import unlike

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(notebook: dict) -> dict:
    found = importlib.util.spec_from_file_location("execute_notebooks", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.executed(notebook)


def shown(notebook: dict) -> list[tuple[list[str], str]]:
    """Of each cell with code: the kinds of its outputs, and their text."""
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            outputs = cell["outputs"]
            text = [one["data"].get("text/plain", "") if "data" in one else "".join(one["text"]) for one in outputs]
            found.append((["image" if "image/png" in one.get("data", ()) else one["output_type"] for one in outputs], "\n".join(text)))
    return found


@pytest.mark.pages
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_prints(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored = json.loads(path.read_text(encoding="utf-8"))
    now, then = shown(executed(stored)), shown(stored)
    assert [kinds for kinds, _ in now] == [kinds for kinds, _ in then], "run docs/notebooks/execute.py again"
    assert not [why for (_, printed), (_, kept) in zip(now, then, strict=True) if (why := unlike(printed, kept))]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_leads_on(path):
    text = path.read_text(encoding="utf-8")
    stored = json.loads(text)
    assert len(text) < 60_000
    words = "".join("".join(cell["source"]) for cell in stored["cells"] if cell["cell_type"] == "markdown")
    links = [target for target in re.findall(r"\]\(([^)\s#]+)", words) if "://" not in target]
    assert links
    assert all((path.parent / target).exists() for target in links)
    assert any(kinds for kinds, _ in shown(stored))


def test_there_are_four_of_them():
    assert [path.stem for path in NOTEBOOKS] == ["pendulum-to-bath", "rigid-bodies", "sampling-on-a-manifold", "your-own-action"]
