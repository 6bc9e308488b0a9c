"""Every Python block of README and docs runs, in order, as printed; and the README prints what the code prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def printed_by(page: Path) -> str:
    out, names = io.StringIO(), {"__name__": "page"}
    with contextlib.redirect_stdout(out):
        for number, block in enumerate(BLOCK.findall(page.read_text())):
            exec(compile(block, f"{page.name}[{number}]", "exec"), names)
    return out.getvalue()


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=lambda p: p.name)
def test_page_runs(page):
    output = printed_by(page)
    assert output
    if page.name == "README.md":
        shown = re.search(r"```\n(VariationalEuler.*?)```", page.read_text(), re.DOTALL)
        assert shown is not None
        # Round-off differs between machines; words, counts and statistics do not.
        without_roundoff = lambda text: re.sub(r"\s+\S+e-1[3-9]|\s0(?=\s)", " ε", text)
        assert without_roundoff(shown.group(1)).split() == without_roundoff(output).split()
