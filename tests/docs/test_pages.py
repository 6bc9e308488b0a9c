"""Every Python block of README and docs runs, in order, as printed, in any directory; and a page shows what its code prints and draws.

What a block prints is shown, if at all, by the plain block right after it. Words must agree, counts too, and other numbers to
one unit of their last digit, because round-off differs between machines; below 1e−12 everything is round-off.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bismut.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```\n(.*?)```)?", re.DOTALL)
NUMBER = re.compile(r"[-−+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
PICTURE = re.compile(r"\]\(([^)\s]+\.png)\)")


def run(page: Path) -> list[tuple[str, str]]:
    """What each block prints, beside what the page shows of it."""
    names, found = {"__name__": "page"}, []
    for number, (block, shown) in enumerate(BLOCK.findall(page.read_text())):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, f"{page.name}[{number}]", "exec"), names)
        found.append((out.getvalue(), shown))
    return found


def unlike(printed: str, shown: str) -> str:
    """Why a text is not what was printed; empty if it is."""
    apart = lambda text: NUMBER.sub(" # ", text).split()
    if apart(printed) != apart(shown):
        return f"printed:\n{printed}\nshown:\n{shown}"
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return ", ".join(f"printed {a}, shown {b}" for a, b in pairs if abs(value(a) - value(b)) > max(1.01 * unit(b), 1e-12))


def value(number: str) -> float:
    return float(number.replace("−", "-"))


def unit(number: str) -> float:
    """One in the last digit; nothing for a whole number, which is a count."""
    digits, _, power = number.lower().partition("e")
    if not power and "." not in digits:
        return 0.0
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


FIRST = ("README.md", "docs/tutorial/1-a-pendulum.md")  # the others belong to `make test-pages`
RUNNING = {str(page.relative_to(ROOT)): page for page in PAGES if BLOCK.search(page.read_text())}


@pytest.mark.parametrize("page", [pytest.param(page, id=name, marks=() if name in FIRST else pytest.mark.pages) for name, page in RUNNING.items()])
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    found = run(page)
    assert any(printed for printed, _ in found)
    assert not [why for printed, shown in found if shown and (why := unlike(printed, shown))]
    if page.parent.name == "tutorial":
        drawn = {picture.name for picture in tmp_path.glob("*.png")}
        assert drawn == {Path(target).name for target in PICTURE.findall(page.read_text())}


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("mean 1.234 of 3", "mean 1.235 of 3", True),
        ("mean 1.234 of 3", "mean 1.236 of 3", False),
        ("defect 4.44e-16", "defect 1.3e-15", True),
        ("defect 4.44e-10", "defect 1.3e-15", False),
        ("of 3 bodies", "of 4 bodies", False),
        ("✓ held", "✗ held", False),
    ],
)
def test_what_counts_as_the_same(printed, shown, same):
    assert (not unlike(printed, shown)) is same


@pytest.mark.slow
def test_the_commands_of_the_readme_run_as_printed_one_after_the_other(tmp_path, monkeypatch):
    """The last block of README, in an empty folder; `. .venv/bin/activate` is what this process has done."""
    block = (ROOT / "README.md").read_text().split("The command `bismut`")[1]
    lines = [line.partition("#")[0].strip() for line in block.splitlines() if line.startswith("    bismut ")]
    commands = [command.split()[1:] for line in lines for command in line.split("&&")]
    assert {command[0] for command in commands} >= {"list", "run", "plot", "view", "new", "figure"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda *_: True)
    for command in commands:
        said = CliRunner().invoke(app, command)
        assert said.exit_code == 0, (command, said.output)
