"""The page of the API is what the docstrings say today, and it says something of every public name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import bismut as bm

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "api.md"


def test_the_page_is_what_the_generator_gives():
    """In a process of its own, because the checks of shapes that tests install would show in signatures."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    made = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "api.py"), "--print"], env=environment, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert made.stdout == PAGE.read_text(encoding="utf-8"), "docs/api.md is out of date: run `python docs/api.py`."


def test_every_public_name_has_an_entry_and_every_link_an_anchor():
    text = PAGE.read_text(encoding="utf-8")
    assert sorted(re.findall(r"^### `(\w+)`$", text, re.MULTILINE)) == sorted(bm.__all__)
    anchors = re.findall(r'<a id="([\w-]+)">', text)
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) == set(anchors)
    assert not re.search(r"0x[0-9a-f]{6}|<function|<class", text)
