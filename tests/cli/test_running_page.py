"""`bismut page`: a system as a page that runs, with what was typed, and words where something is wrong."""

import json


def test_a_gallery_system_becomes_a_page(bismut, tmp_path):
    words = ("page", "oscillator", "--set", "frequency=2", "--trajectories", 5, "--seed", 3, "--observe", "energy,q", "--html", "page.html", "--json")
    made = bismut(*words)
    assert made.exit_code == 0, made.stderr
    told = json.loads(made.stdout)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert told["bytes"] == (tmp_path / "page.html").stat().st_size
    assert told["wasm_bytes"] < 20_000
    assert told["sliders"] == 2
    assert told["undrawn"] is None
    assert '"frequency","entry":null,"value":2.0' in text
    assert '"trajectories":5' in text
    assert "from_changes('oscillator'" in text


def test_a_wrong_quantity_is_said_with_the_nearest(bismut):
    made = bismut("page", "oscillator", "--observe", "enrgy", "--html", "page.html")
    assert made.exit_code == 2
    assert "energy" in made.stderr
