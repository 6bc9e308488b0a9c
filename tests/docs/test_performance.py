"""The page of performance is what the data say: its tables are written from them."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
found = importlib.util.spec_from_file_location("performance_page", ROOT / "docs" / "performance.py")
performance = importlib.util.module_from_spec(found)
found.loader.exec_module(performance)
PAGE, DATA = performance.PAGE.read_text(encoding="utf-8"), json.loads(performance.DATA.read_text(encoding="utf-8"))


def test_the_page_is_what_the_data_give():
    assert performance.page(PAGE, DATA) == PAGE, "docs/performance.md is out of date: run `python docs/performance.py`."
    assert performance.DATA.stat().st_size < 20_000


def test_every_row_of_the_data_is_on_the_page():
    for row in DATA["rows"]:
        assert row["work"] in PAGE
        assert row["peer"] in PAGE


def test_what_make_bench_writes_can_be_taken_over():
    """A row as `benchmarks/table.py` makes it, one of a peer that is missing, and a new number in the table."""
    speed = lambda million: {"speed": 1e6 * million, "effort": 1e6 * million}
    common = {"wanted": 2.0, "at_most": False, "reached": True}
    rows = [
        common | {"work": "a", "peer": "C", "missing": None, "ours_found": speed(123.456), "peer_found": speed(50), "ratio": 2.46912, "effort": 2.5},
        common | {"work": "b", "peer": "D", "missing": "no D here", "ours_found": {}, "peer_found": {}, "ratio": None, "effort": None},
    ]
    taken = performance.taken_over({"date": "d", "machine": "m", "python": "p", "goals": rows, "first": [{"work": "a", "seconds": 2.0}], "steps": []})
    text = performance.page(PAGE, taken)
    assert "| a | 123 | C | 50 | 2.47 | 2.5 |" in text
    assert "| b |  | D |  | not measured: no D here |  |" in text


def test_single_trajectories_memory_and_samplers_are_taken_over():
    machine = {"date": "d", "machine": "m", "python": "p"}
    alone = {"alone": [{"work": "one top", "speed": 4.2}], "memory": [{"work": "10⁶ points", "bytes": 1.5e9, "missing": None}]}
    sampled = {"samplers": [{"work": "torus", "peer": "mici", "ours": 12345.6, "theirs": None, "ratio": None}]}
    taken = performance.taken_over(machine | {"goals": []} | alone) | {"samplers": performance.samplers_taken_over(machine | sampled)}
    text = performance.page(PAGE, taken)
    assert "| one top, million steps a second | 4.2 |" in text
    assert "| 10⁶ points, GB | 1.5 |" in text
    assert "| torus | 12 300 | mici | not measured |  |" in text


def test_a_page_without_a_place_for_a_table_is_refused():
    with pytest.raises(SystemExit, match="one place for each table"):
        performance.page(PAGE.replace("<!-- table: observers -->", ""), DATA)
