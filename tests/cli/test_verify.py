"""`bismut verify`: a table, JSON, a page, and exit codes that a script can trust."""

import json

import pytest


def test_a_system_by_name(bismut):
    said = bismut("verify", "oscillator", "--scheme", "verlet", "--step", "0.05", "--quick", "--json")
    assert said.exit_code == 0, (said.stderr, said.exception)
    told = json.loads(said.stdout)
    assert told["schema"] == "bismut.certificate/1"
    assert (told["subject"], told["step"], told["verdict"]) == ("Verlet", 0.05, "pass")
    laws = {finding["law"]: finding for finding in told["findings"]}
    assert laws["symplectic defect"]["verdict"] == "pass"
    assert laws["derivatives of L"]["measured"] < 1e-5
    assert laws["orders"]["measured"] is None  # what is no number is null


def test_one_thing_at_a_time(bismut):
    for words in ((), ("oscillator", "--all")):
        said = bismut("verify", *words)
        assert said.exit_code == 2
        assert "verify expects one of" in said.stderr


@pytest.mark.parametrize("budget", ["soon", "-1"])
def test_a_budget_is_a_time(bismut, budget):
    said = bismut("verify", "oscillator", f"--budget={budget}")
    assert said.exit_code == 2
    assert 'or "30s", "2m", "1h"' in said.stderr


def test_a_folder_that_came_from_code_is_not_run(bismut, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "model.txt").write_text("raise SystemExit", encoding="utf-8")
    said = bismut("verify", folder)
    assert said.exit_code == 2
    assert "never run as code" in said.stderr


def test_a_scheme_is_known_however_it_is_capitalised(bismut):
    """By `run` as by `verify`."""
    said = bismut("run", "oscillator", "--scheme", "verlet", "--steps", "10", "--dry-run")
    assert said.exit_code == 0, said.output
