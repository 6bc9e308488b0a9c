"""Progress is seen where somebody looks: lines in a log now and then, one line in a notebook, without any package for it."""

import sys
from types import SimpleNamespace

from bismut.ensembles import progress
from bismut.ensembles.progress import Lines, Progress


def test_a_long_run_into_a_pipe_tells_lines(capsys):
    """Three lines of a run that goes on; a run of less than half a minute says nothing."""
    lines = Lines(over=False, every=0.0)
    for done in (10, 20, 30):
        lines.tell(done, 40, "energy 0.5")
    lines.end()
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in told] == ["25%", "50%", "75%"]
    assert all(line.endswith("energy 0.5") for line in told)
    with Progress(None, 2, 3, None) as short:
        short.advance(3, 2)
    assert capsys.readouterr().err == ""


def test_a_notebook_writes_over_one_line_and_cleans_up(capsys, monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert progress.in_notebook()
    with Progress(True, 4, 10, None) as bar:
        bar._lines._every = 0.0
        bar.advance(10, 2)
    told = capsys.readouterr().err
    assert "\n" not in told
    assert " 50%" in told
    assert told.endswith(" \r")
