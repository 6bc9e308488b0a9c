"""As a user meets it: in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_help_comes_without_jax():
    """Neither JAX nor NumPy is read for help."""
    code = "import sys\nfrom bismut.cli.main import app\napp(['--help'], standalone_mode=False)\nprint('jax' in sys.modules, 'numpy' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert "doctor" in found.stdout
    assert found.stdout.splitlines()[-1] == "False False"


def test_the_shell_completes_names():
    """What the completion scripts ask for: gallery entries, figures, schemes."""

    def completed(line: str) -> list[str]:
        asked = {"_BISMUT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "PYTHONPATH": str(ROOT / "src")}
        return subprocess.run(
            [sys.executable, "-m", "bismut"], env=os.environ | asked, capture_output=True, text=True, check=False, encoding="utf-8"
        ).stdout.split()

    assert completed("bismut run heav") == ["heavy-top", "heavy-top-reduced"]
    assert completed("bismut figure spring") == ["spring-lattice"]
    assert completed("bismut run pendulum --scheme Mid") == ["Midpoint"]


def test_double_precision_is_set_in_a_fresh_process(tmp_path):
    words = ["run", "oscillator", "--steps", "5", "--trajectories", "2", "--out", "a"]
    without = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"} | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "bismut", *words]
    run = subprocess.run(command, cwd=tmp_path, env=without, capture_output=True, text=True, check=False, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    assert "all 2 trajectories finished" in run.stdout
    assert '"precision": "float64"' in (tmp_path / "a" / "provenance.json").read_text()
    assert "bismut run oscillator --steps 5 --trajectories 2 --out a" in (tmp_path / "a" / "provenance.json").read_text()


def test_an_interrupted_run_ends_with_130(process, tmp_path):
    """A run of a day is stopped by Ctrl-C soon after it has begun."""
    run = process("run", "oscillator", "--steps", "1000000000", "--every", "1000000", "--trajectories", "2000", "--observe", "energy", "--out", "a")
    run.wait_for((tmp_path / "a" / "manifest.jsonl").exists)
    time.sleep(0.5)  # steps are being made
    assert run.returncode is None, run.communicate()[1]
    run.send_signal(signal.SIGINT)
    _, problem = run.communicate(timeout=120)
    assert run.returncode == 130, problem
    assert not list(tmp_path.glob("*.part"))
