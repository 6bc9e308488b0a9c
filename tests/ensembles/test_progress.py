"""Progress is seen where somebody looks: lines in a log now and then, one line in a notebook, without any package for it."""

import sys
from types import SimpleNamespace

import jax.numpy as jnp

import bismut as bm
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


def test_progress_beside_paths_tells_of_what_is_recorded(capsys):
    """The newest mean is that of a recorded observable, whoever else watches."""
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: q @ q))
    start = scheme.start(jnp.ones(1), velocity=jnp.zeros(1))
    observe = {"kept": bm.paths([0, 1]), "energy": bm.energy}
    assert bm.simulate(scheme, start, step=0.1, steps=40, trajectories=4, observe=observe, every=1, progress=True).outcome.ok
