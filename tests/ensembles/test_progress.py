"""Progress is seen where somebody looks: a bar that fits its terminal, lines in a log, in a notebook one output that is empty in the end."""

import io
import re
import sys
import time

import jax.numpy as jnp
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from rich.console import Console
from traitlets.config import Config

import bismut as bm
from bismut.ensembles import progress
from bismut.ensembles.progress import LogLines, NotebookCell, Progress, TerminalBar, fitting


def test_a_long_run_into_a_pipe_tells_lines(capsys):
    """Three lines of a run that goes on; a run of less than half a minute says nothing."""
    lines = LogLines(every=0.0)
    for done in (10, 20, 30):
        lines.update(done, 40, "", "energy 0.5")
    lines.end()
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in told] == ["25%", "50%", "75%"]
    assert all(line.endswith("energy 0.5") for line in told)
    with Progress(None, 2, 3, None) as short:
        short.advance(3, 2)
    assert capsys.readouterr().err == ""


@pytest.fixture
def kernel(tmp_path):
    """A shell like that of Colab, which is made from the one of Jupyter's kernels."""
    kind = type("Shell", (type("ZMQInteractiveShell", (InteractiveShell,), {}),), {})
    InteractiveShell.clear_instance()
    yield kind.instance(ipython_dir=str(tmp_path), config=Config({"HistoryManager": {"enabled": False}}))
    kind.clear_instance()


def test_a_notebook_replaces_one_output_and_leaves_it_empty(capsys, kernel):
    """As a front end hears it: one output, later messages replace it, the last one is empty. Nothing goes to standard error."""
    assert progress.in_notebook()
    bar = Progress(None, 4, 10, "energy")
    assert isinstance(bar._display, NotebookCell)
    bar._display._every = 0.0
    with capture_output() as heard, bar:
        bar.advance(10, 2, 0.25)
        bar.advance(10, 1, 0.5)
    first, second, last = heard.outputs
    assert first.data["text/plain"].startswith(" 50%")
    assert first.data["text/plain"].endswith("energy 0.25")
    assert '<progress value="0.7500"' in second.data["text/html"]
    assert set(last.data.values()) == {""}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("wide", [20, 30, 40, 56, 60, 79, 80, 100, 200])
def test_a_bar_fits_its_terminal_in_one_line(wide):
    """However narrow: how much is done and how long it takes are whole, and nothing is cut in the middle."""
    sink = io.StringIO()
    with Progress(None, 100_000, 1000, "energy", Console(file=sink, force_terminal=True, width=wide, color_system=None)) as shown:
        for _ in range(3):
            shown.advance(1000, 20_000, 0.51234)
            time.sleep(0.02)
        sink.truncate(sink.seek(0))
        shown._display._bar.refresh()
        drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", sink.getvalue())
    lines = [line for line in drawn.splitlines() if line.strip()]
    assert len(lines) == 1
    assert len(lines[0].rstrip()) <= wide
    assert "60%" in lines[0]
    assert "…" not in lines[0]
    assert re.search(r"\d:\d\d:\d\d", lines[0])
    assert ("━" in lines[0]) == (wide >= 56)


def test_what_matters_least_gives_way_first():
    parts = ("rate", "headline", "counts")
    assert [fitting(parts, room) for room in (3, 4, 11, 14, 30)] == ["", "rate", "rate", "rate  headline", "rate  headline  counts"]
    assert fitting(("", "headline"), 10) == "headline"


def test_a_dumb_terminal_gets_lines(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    assert type(Progress(None, 1, 1, None)._display) is LogLines
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with Progress(None, 1, 1, None) as bar:
        assert isinstance(bar._display, TerminalBar)
    assert Progress(False, 1, 1, None)._display is None


def test_progress_beside_paths_tells_of_what_is_recorded(capsys):
    """The newest mean is that of a recorded observable, whoever else watches."""
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: q @ q))
    start = scheme.start(jnp.ones(1), velocity=jnp.zeros(1))
    observe = {"kept": bm.paths([0, 1]), "energy": bm.energy}
    assert bm.simulate(scheme, start, step=0.1, steps=40, trajectories=4, observe=observe, every=1, progress=True).outcome.ok
