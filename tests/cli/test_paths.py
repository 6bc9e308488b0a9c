"""Run files name what drives: paths other than white noise, with clear refusals."""

import tomllib

import numpy as np
import pytest

import bismut as bm
from bismut.cli.runs.from_options import from_options
from bismut.cli.runs.prepare import prepare
from bismut.cli.runs.tables import Mistakes
from bismut.cli.runs.toml import write

BASE = {"system": {"name": "oscillator"}, "steps": 8, "trajectories": 2, "seed": 5, "step": 0.1}


def ready(**path):
    return prepare({**BASE, "path": path}, {})


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"name": "Wiener", "bounded": True}, bm.Wiener(5, bounded=True)),
        ({"name": "OrnsteinUhlenbeck", "correlation_time": 0.3}, bm.OrnsteinUhlenbeck(5, correlation_time=0.3)),
        ({"name": "Jumps", "rate": 2, "spread": 0.5}, bm.Jumps(5, rate=2, spread=0.5)),
        ({"name": "FractionalBrownian", "hurst": 0.7, "steps": 8}, bm.FractionalBrownian(5, hurst=0.7, steps=8)),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_a_path_by_name_is_that_of_the_api(table, path):
    run = ready(**table)
    assert repr(run.request().path) == repr(path)
    again = prepare(tomllib.loads(write(run.document)), {})
    assert repr(again.request().path) == repr(path)


@pytest.mark.parametrize("ending", ["npy", "csv", "txt"])
def test_a_recorded_path_becomes_numbers(tmp_path, ending):
    values = np.random.default_rng(0).normal(size=(9, 1))
    file = tmp_path / f"wind.{ending}"
    np.save(file, values) if ending == "npy" else np.savetxt(file, values, delimiter="," if ending == "csv" else " ")
    run = ready(name="Recorded", file=str(file), values=True)
    file.unlink()
    found = run.request().path.increments(0, 8, 1, 0.1)
    np.testing.assert_allclose(np.asarray(found), np.diff(values, axis=0), atol=1e-12)


def test_a_file_lies_beside_the_run_file_that_names_it(tmp_path, monkeypatch):
    """Wherever the command is given; with an absolute name, where that says."""
    folder, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    folder.mkdir(), elsewhere.mkdir()
    np.save(folder / "wind.npy", np.ones((8, 1)))
    np.save(elsewhere / "wind.npy", np.zeros((8, 1)))
    monkeypatch.chdir(elsewhere)
    for named, value in (("wind.npy", 1.0), (str(elsewhere / "wind.npy"), 0.0)):
        (folder / "r.toml").write_text(write({**BASE, "path": {"name": "Recorded", "file": named}}))
        run = from_options(str(folder / "r.toml"), {})
        assert float(run.request().path.increments(0, 8, 1, 0.1)[0, 0]) == value


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"name": "OrnsteinUlenbeck"}, "OrnsteinUhlenbeck"),
        ({"name": "OrnsteinUhlenbeck"}, "correlation_time"),
        ({"name": "Jumps", "rate": 1.0, "hurst": 0.7}, "no such key"),
        ({"name": "FractionalBrownian", "hurst": 0.3, "steps": 8}, "between ½ and 1"),
        ({"name": "FractionalBrownian", "hurst": 0.7, "steps": 4}, "steps 0 to 4"),
        ({"name": "Recorded"}, "file and increments"),
        ({"name": "Recorded", "file": "nowhere.npy"}, "No such file"),
        ({"name": "Recorded", "increments": [[0.1, 0.2]] * 8}, "2 channels"),
        ({"name": "Recorded", "increments": [[0.1]] * 3}, "steps 0 to 3"),
        ({"name": "Jumps", "rate": 1000.0}, "jumps per step"),
    ],
)
def test_what_is_wrong_with_a_path_is_said(table, words):
    with pytest.raises(Mistakes, match=words):
        ready(**table)
