"""What a page points to is there: files, tests, and names in modules. Read as text; nothing is imported."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAP = ROOT / "docs" / "from-paper-to-code.md"

LINK = re.compile(r"\]\(([^)\s]+)\)")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
NAMED = re.compile(r"\[`[\w/]+\.py`\]\(([^)\s]+)\) : ((?:`[\w.]+`(?:, )?)+)")  # [`file.py`](path) : `name`, `Class.method`


def code_removed(text: str) -> str:
    """A page without its code, in which brackets are no links."""
    return re.sub(r"`[^`\n]*`", "``", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@cache
def names(path: Path) -> frozenset[str]:
    """Functions, classes, their members and assigned names of a module."""
    found = set()

    def collect(body, prefix=""):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{node.name}.")
            for target in node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []:
                found.update(prefix + leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name))

    collect(ast.parse(path.read_text()).body)
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    targets = [target.split("#")[0] for target in LINK.findall(code_removed(page.read_text())) if "://" not in target and not target.startswith("#")]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_every_test_that_the_map_of_the_paper_names_exists():
    named = TEST.findall(MAP.read_text())
    assert len(named) > 50
    assert not [f"{file}::{test}" for file, test in named if not (ROOT / file).exists() or test not in names(ROOT / file)]


def test_every_name_that_the_map_of_the_paper_gives_exists():
    named = [(MAP.parent / path, name) for path, several in NAMED.findall(MAP.read_text()) for name in re.findall(r"`([\w.]+)`", several)]
    assert len(named) > 40
    assert not [f"{path.name} : {name}" for path, name in named if name not in names(path)]


def test_a_wrong_name_would_be_seen():
    assert "test_a_wrong_name_would_be_seen" in names(Path(__file__))
    assert "no_such_thing" not in names(Path(__file__))
    assert NAMED.findall("[`a/b.py`](../src/a/b.py) : `f`, `C.m`") == [("../src/a/b.py", "`f`, `C.m`")]
    assert TEST.findall("`tests/a/test_b.py::test_c`") == [("tests/a/test_b.py", "test_c")]
