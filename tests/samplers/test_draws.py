"""What `sample` returns: a tree that ArviZ reads, by the same numbers; continued runs; the command."""

import importlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import arviz
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import bismut as bm
from bismut.cli.main import app

SPACE = {"R": bm.SO3(), "x": bm.Euclidean(2)}


def log_density(p):
    return 2 * p["R"][2, 2] - 0.5 * jnp.sum((p["x"] - p["R"][:2, 0]) ** 2)


@pytest.fixture(scope="module")
def draws():
    return bm.sample(SPACE, log_density, chains=32, draws=40, burn_in=60, seed=3)


def test_a_tree_that_arviz_reads(draws):
    tree = draws.tree
    assert tree["posterior"]["R"].dims[:2] == ("chain", "draw")
    assert tree["posterior"]["R"].shape == (32, 40, 3, 3)
    assert {"lp", "acceptance", "diverging", "unsolved", "energy", "energy_error"} == set(tree["sample_stats"].data_vars)
    table = arviz.summary(draws.to_arviz(), var_names=["x"], round_to="none")
    for k in range(2):
        row = draws.table[f"x[{k}]"]
        assert row["mean"] == pytest.approx(table["mean"][f"x[{k}]"], rel=1e-12)
        assert row["ess_bulk"] == pytest.approx(table["ess_bulk"][f"x[{k}]"], rel=1e-6)
        assert row["ess_tail"] == pytest.approx(table["ess_tail"][f"x[{k}]"], rel=1e-6)
        assert row["rhat"] == pytest.approx(table["r_hat"][f"x[{k}]"], rel=1e-9)
        assert tree["posterior"]["x"].attrs["rhat"][k] == row["rhat"]
        assert tree["posterior"]["x"].attrs["ess_tail"][k] == row["ess_tail"]
    assert tree["posterior"]["R"].attrs["ess_bulk"] == [draws.table[f"R[{i}, {j}]"]["ess_bulk"] for i in range(3) for j in range(3)]
    assert (tree["posterior"].attrs["rhat"], tree["posterior"].attrs["ess"]) == (draws.rhat, draws.ess)


def test_what_is_reported_is_so(draws):
    """lp is the density at the draw, rotations are rotations, and the text says how it went."""
    one = {name: draws[name][5, 7] for name in SPACE}
    assert float(log_density(one)) == pytest.approx(draws.sample_stats["lp"][5, 7], abs=1e-9)
    assert np.abs(np.einsum("cdij,cdkj->cdik", draws["R"], draws["R"]) - np.eye(3)).max() < 1e-9
    assert draws.sample_stats["acceptance"].mean() == pytest.approx(draws.acceptance)
    for word in ("32 chains, 40 draws", "ess_bulk", "acceptance", "s of burn-in", "x[1]"):
        assert word in repr(draws)
    with pytest.raises(bm.errors.BismutError, match="no parameter"):
        draws["Q"]


def test_errors_of_refused_trajectories_are_shown(draws):
    """⟨e^{−Δ}⟩ = 1 and ⟨min(1, e^{−Δ})⟩ is the acceptance, over all that were tried, at 4 standard errors; those refused had Δ > 0."""
    error, accepted = draws.sample_stats["energy_error"], draws.sample_stats["acceptance"]
    weight = np.exp(-error)
    assert abs(weight.mean() - 1) < 4 * weight.std() / np.sqrt(weight.size)
    excess = np.minimum(weight, 1) - accepted
    assert abs(excess.mean()) < 4 * excess.std() / np.sqrt(excess.size)
    assert 0 < (accepted == 0).mean() < 0.5
    assert error[accepted == 0].min() > 0


def test_a_continued_run_is_one_longer_run(draws):
    """To the bit, wherever it was cut."""
    parts = bm.sample(SPACE, log_density, chains=32, draws=17, burn_in=60, seed=3).more(23)
    assert all((parts[name] == draws[name]).all() for name in SPACE)
    assert all((parts.sample_stats[name] == values).all() for name, values in draws.sample_stats.items())
    assert parts.acceptance == pytest.approx(draws.acceptance)
    with pytest.raises(bm.errors.DomainError, match="whole number"):
        draws.more(0)


LATER = """
import pickle, sys
import numpy as np

with open(sys.argv[1], "rb") as file:
    draws = pickle.load(file)
np.save(sys.argv[2], draws.more(7)["x"])
"""


@pytest.mark.long
def test_draws_are_continued_in_another_process(tmp_path, monkeypatch):
    """Pickled, read by a new process and continued there: to the bit as if nothing had come between."""
    (tmp_path / "kept_model.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    model = importlib.import_module("kept_model")
    drawn = bm.sample(model.space, model.log_density, chains=8, draws=5, burn_in=40, seed=4, progress=False)
    (tmp_path / "draws.pickle").write_bytes(pickle.dumps(drawn))
    paths = os.pathsep.join([str(tmp_path), str(Path(bm.__file__).parents[1])])
    ask = [sys.executable, "-c", LATER, tmp_path / "draws.pickle", tmp_path / "more.npy"]
    subprocess.run(ask, env=os.environ | {"PYTHONPATH": paths}, check=True, timeout=500)
    assert (np.load(tmp_path / "more.npy") == drawn.more(7)["x"]).all()


def test_bits_are_not_those_of_the_machine(draws):
    """The same on one thread."""
    alone = bm.sample(SPACE, log_density, chains=32, draws=40, burn_in=60, seed=3, executor=bm.Threads(1))
    assert (alone["x"] == draws["x"]).all()


MODEL = """
import bismut as bm

space = bm.Sphere(2)


def log_density(x):
    return 2.0 * x[0]


def halves(x):
    return x
"""


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)

    def bismut(*words, code=0):
        done = CliRunner().invoke(app, ["sample", *words])
        assert done.exit_code == code, done.output
        return done

    asked = ("--chains", "64", "--draws", "60", "--burn-in", "60", "--seed", "1")
    done = bismut("model.py:log_density", *asked, "--json", "--out", "draws.nc")
    report = json.loads(done.stdout)
    assert report["trusted"]
    assert report["space"] == "Sphere(n=2)"
    assert report["chains"] == 64
    assert abs(report["parameters"]["x[0]"]["mean"] - (1 / np.tanh(2) - 0.5)) < 5 * report["parameters"]["x[0]"]["error"]
    kept = arviz.from_netcdf(tmp_path / "draws.nc")["posterior"]
    assert kept["x"].shape == (64, 60, 3)
    assert kept["x"].attrs["rhat"].shape == (3,)
    assert kept.attrs["rhat"] == kept["x"].attrs["rhat"].max()
    assert "draws.nc exists" in bismut("model.py:log_density", "--out", "draws.nc", code=2).stderr
    assert "one real number" in bismut("model.py:halves", code=2).stderr
    assert "no 'density'" in bismut("model.py:density", code=2).stderr
    (tmp_path / "bare.py").write_text("log_density = lambda x: -x @ x")
    assert "no `space`" in bismut("bare.py:log_density", code=2).stderr
