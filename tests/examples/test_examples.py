"""Every example runs as a user runs it, in a process of its own; smoke mode makes it small. They are pages: `make test-pages` runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What these show the pages of the documentation show too, and those are run as well; `make measure` runs them all the same.
SHOWN_ELSEWHERE = ("heavy_top", "chain", "water")
STUDIES = ("water",)  # with options, and a table as the result
# Each runs for a moment, so that compiling is what it costs: a fast compiler beats a fast program.
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT / "src"),
    "PYTHONIOENCODING": "utf-8",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"),
}


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem in SHOWN_ELSEWHERE else pytest.mark.pages) for path in EXAMPLES],
)
def test_an_example_runs_and_prints_numbers(example, tmp_path):
    done = subprocess.run(
        [sys.executable, str(example), "--smoke"],
        cwd=tmp_path,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert any(letter.isdigit() for letter in done.stdout)
    assert "nan" not in done.stdout
    assert not list(tmp_path.iterdir())  # nothing is left behind


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_shows(example):
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= (75 if example.stem in STUDIES else 50)
    assert text.startswith('"""')


@pytest.mark.pages
def test_the_attitude_filter_errs_as_much_as_a_linear_one():
    """Within a fifth: 60 times, of which a memory of 3 steps leaves 20, with 3 errors each, have a typical error that is known to a tenth."""
    command = [sys.executable, str(ROOT / "examples" / "attitude_filter.py")]
    printed = subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=True, encoding="utf-8", timeout=300).stdout
    typical, linear = map(float, re.findall(r"([\d.]+)°", printed))
    assert linear == pytest.approx(3.63, abs=0.01)
    assert typical == pytest.approx(linear, rel=0.2)
