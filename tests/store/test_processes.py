"""Runs of the command line as they are begun, stopped, doubled and starved."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bismut as bm
from bismut.cli.main import app
from bismut.ensembles import run_request
from bismut.store import claim, open_run, read_run
from tests.commands import Command, often

ROOT = Path(__file__).parents[2]
LONG = ("run", "oscillator", "--steps", "100000000", "--every", "20000", "--trajectories", "500", "--observe", "energy", "--out", "a")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_run_that_is_stopped_keeps_what_is_complete(tmp_path, number):
    """The end of a queue's time, a closed terminal, Ctrl-C: a result that says how far it came."""
    run = Command(tmp_path, *LONG, before=often)
    run.wait_for((tmp_path / "a" / "checkpoints" / "0-0.zip").exists)
    assert open_run(tmp_path / "a").state == "running"
    run.send_signal(number)
    out, problem = run.communicate(timeout=60)
    assert run.returncode == 128 + number, problem
    assert "Traceback" not in problem
    assert "bismut resume a goes on" in problem
    assert "kept in a" in out
    stored = read_run(tmp_path / "a").stored
    assert stored.state == "interrupted"
    assert stored.asked == {"trajectories": 500, "steps": 100_000_000}
    with pytest.warns(UserWarning, match="not complete: interrupted"):
        tree = bm.load(tmp_path / "a")
    assert np.isfinite(tree["energy"]["mean"].values[0])
    assert "not complete: interrupted" in CliRunner().invoke(app, ["info", str(tmp_path / "a")]).stdout


@pytest.mark.parametrize("seconds", [0.03, 0.1, 0.3, 0.5, 0.8, 1.3])
def test_ctrl_c_while_modules_are_read_is_no_traceback(tmp_path, seconds):
    code = (
        "import os, signal, threading\nfrom bismut.cli import main\n"
        f"threading.Timer({seconds}, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "main()"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    run = subprocess.Popen([sys.executable, "-c", code, *LONG], cwd=tmp_path, env=environment, **pipes)
    _, problem = run.communicate(timeout=60)
    assert run.returncode == 130, problem
    assert "Traceback" not in problem
    assert "interrupted" in problem
    assert not (tmp_path / "a").exists() or open_run(tmp_path / "a").state == "interrupted"  # a fast machine has begun to run


def test_two_runs_into_one_folder(tmp_path):
    """One has it; the other is told so before it computes anything, and nothing of either is lost."""
    words = ("run", "oscillator", "--steps", "20000", "--trajectories", "200", "--out", "a")
    runs = [Command(tmp_path, *words, "--seed", str(seed)) for seed in (1, 2)]
    ends = [(*run.communicate(timeout=60), run.returncode, seed) for seed, run in enumerate(runs, 1)]
    (_, _, _, kept), (_, problem, code, _) = sorted(ends, key=lambda end: end[2])
    assert code == 2
    assert "is being written by process" in problem or "exists already" in problem
    assert read_run(tmp_path / "a").provenance["seed"] == kept


FULL = ["run", "oscillator", "--steps", "2", "--trajectories", "5000", "--block", "5000", "--observe", "energy", "--out"]


def test_a_disk_that_fills_up_while_computing(mounted, tmp_path, monkeypatch):
    """The numbers are printed, the result is elsewhere and whole, and what was said says where."""
    disk = mounted("size=2m")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("bismut.store.run_stored.run_request", lambda *given, **more: (fill(disk), run_request(*given, **more))[1])
    found = CliRunner().invoke(app, [*FULL, str(disk / "a")])
    assert found.exit_code == 1
    assert "No space left on device" in found.stderr
    (kept,) = tmp_path.glob("bismut-*/a")
    assert f"The result is in {kept}" in found.stderr
    assert "energy: " in found.stdout
    assert read_run(kept).statistics["final"]["q0"].shape == (5000, 1)
    assert "steps = 2" in read_run(kept).configuration
    assert {entry.name for entry in disk.iterdir()} == {"filling"}


def test_a_disk_that_is_too_small_is_refused_before_computing(mounted, monkeypatch):
    monkeypatch.setattr("bismut.store.run_stored.run_request", lambda *given, **more: pytest.fail("it was computed"))
    disk = mounted("size=2m")
    found = CliRunner().invoke(app, [*FULL, str(disk / "a"), "--trajectories", "200000"])
    assert found.exit_code == 1
    assert "MB are free" in found.stderr
    assert not list(disk.iterdir())


def test_numbers_are_printed_where_no_place_takes_them(mounted, monkeypatch):
    disk = mounted("size=2m")
    for name in ("tempfile.gettempdir", "pathlib.Path.cwd", "pathlib.Path.home"):
        monkeypatch.setattr(name, lambda: str(disk))
    monkeypatch.setattr("bismut.store.run_stored.run_request", lambda *given, **more: (fill(disk), run_request(*given, **more))[1])
    found = CliRunner().invoke(app, [*FULL, str(disk / "a")])
    assert found.exit_code == 1
    assert "energy: " in found.stdout
    assert "No other place took it" in found.stderr


def fill(disk: Path) -> None:
    (disk / "filling").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - 2**14))


def test_a_run_without_statistics_is_told_of(tmp_path):
    """Blocks that a killed run left: `info` says what there is, `plot` that there is nothing to draw."""
    with claim(tmp_path / "a", asked={"trajectories": 9}) as run:
        run.commit(0, 0, {"x": np.zeros(2)})
        run.checkpoint(0, 1, {"x": np.zeros(2)})
    found = CliRunner().invoke(app, ["info", str(tmp_path / "a")])
    assert found.exit_code == 0, found.stderr
    assert "interrupted, 1 block committed, 1 in progress; 2 parts complete, 1 partial, 0 corrupt" in found.stdout
    refused = CliRunner().invoke(app, ["plot", str(tmp_path / "a")])
    assert (refused.exit_code, "holds no" in refused.stderr) == (2, True)
    (tmp_path / "a" / "blocks" / "0-0.zip").unlink()
    assert "0-0.zip is missing" in CliRunner().invoke(app, ["info", str(tmp_path / "a")]).stdout


def test_info_and_plot_refuse_damage_and_keep_order(tmp_path):
    """Observers are listed as they were asked for; of a chunk that is gone both commands give the name."""
    runner, folder = CliRunner(), str(tmp_path / "a")
    asked = ["zeta={of='q'}", "alpha={of='p'}", "mid={of='energy'}"]
    options = [word for one in asked for word in ("--observe", one)]
    found = runner.invoke(app, ["run", "oscillator", "--steps", "3", "--trajectories", "2", *options, "--out", folder])
    assert found.exit_code == 0, found.stderr
    told = json.loads(runner.invoke(app, ["info", folder, "--json"]).stdout)
    assert list(told["statistics"]) == ["zeta", "alpha", "mid", "final", "outcome"]
    assert list(told["statistics"]["final"]["arrays"]) == ["q0", "p0"]
    assert (told["state"], told["done"]["trajectories"]) == ("complete", 2)
    (tmp_path / "a" / "statistics" / "alpha" / "mean" / "c" / "0" / "0").unlink()
    for command in ("info", "plot"):
        refused = runner.invoke(app, [command, folder])
        assert refused.exit_code == 2
        assert "alpha/mean/c/0/0 is missing" in refused.stderr
