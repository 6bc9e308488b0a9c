"""RUN/parts/0-3  ∪  RUN/parts/3-6  =  RUN,  and a driver that is killed with its workers at work loses nothing; both bit for bit"""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from bismut.errors import BismutError, StoreError
from bismut.executors.dask_connect import check_address
from bismut.store import load, open_run, provenance, verify_data

RUN = ("run", "kubo-oscillator", "--trajectories", "22", "--steps", "60", "--block", "4", "--seed", "3", "--observe", "energy,time_average:q,paths")


def same(one: Path, other: Path) -> None:
    """Every array of the results, and every block."""
    a, b = load(one), load(other)
    assert [node.path for node in a.subtree] == [node.path for node in b.subtree]
    for mine, yours in zip(a.subtree, b.subtree, strict=True):
        for name, array in mine.data_vars.items():
            np.testing.assert_array_equal(array, yours[name], f"{mine.path}/{name}")
    first, second = open_run(one), open_run(other)
    assert first.state == second.state == "complete"
    assert first.blocks.keys() == second.blocks.keys()
    for place in first.blocks:
        assert first.committed[f"blocks/{place[0]}-{place[1]}.zip"].files == second.committed[f"blocks/{place[0]}-{place[1]}.zip"].files


@pytest.mark.long
def test_parts_made_at_the_same_time_are_the_whole(bismut, process, tmp_path):
    assert bismut(*RUN, "--out", "whole").exit_code == 0
    both = [process(*RUN, "--out", "run", "--blocks", blocks) for blocks in ("0:3", "3:99")]
    told = [part.communicate(timeout=300) for part in both]
    assert [part.returncode for part in both] == [0, 0], told
    assert any("run has all of its 6 blocks: bismut merge run" in out for out, _ in told)
    assert {folder.name for folder in (tmp_path / "run" / "parts").iterdir()} == {"0-3", "3-6"}
    merged = bismut("merge", "run")
    assert merged.exit_code == 0, merged.stderr
    same(tmp_path / "whole", tmp_path / "run")
    assert not (tmp_path / "run" / "parts").exists()
    assert verify_data(tmp_path / "run").ok
    assert "certificate.json" in open_run(tmp_path / "run").committed


@pytest.mark.long
def test_what_is_missing_damaged_or_of_another_run_is_named(bismut, tmp_path):
    """One block after another in this process; a part that is begun again is gone on with, and one that is complete is left alone."""
    part = lambda blocks, *more: bismut(*RUN, "--out", "run", "--blocks", blocks, *more)
    assert "not there yet: blocks 0:2, 3:6" in part("2:3").stdout
    assert "is complete; nothing is computed" in part("2:3").stdout
    assert "so blocks 6:9 are none" in part("6:9").stdout
    assert part("0:2").exit_code == 0
    assert "blocks 2:3: complete" in bismut("info", "run").stdout
    refused = bismut("merge", "run")
    assert refused.exit_code == 2
    assert "lacks blocks 3:6 of 6" in refused.stderr
    other = part("3:6", "--seed", "4")
    assert other.exit_code == 2
    assert "seed is 3 there, 4 here" in other.stderr
    assert not (tmp_path / "run" / "parts" / "3-6").exists()
    assert part("3:6").exit_code == 0
    chunk = tmp_path / "run" / "parts" / "3-6" / "blocks" / "0-4.zip"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    assert "0-4.zip" in bismut("merge", "run").stderr
    assert bismut("repair", "run/parts/3-6").exit_code == 0
    assert sorted(block for _, block in open_run(tmp_path / "run" / "parts" / "3-6").blocks) == [3, 4, 5]
    assert bismut("merge", "run").exit_code == 0
    bismut(*RUN, "--out", "whole")
    same(tmp_path / "whole", tmp_path / "run")
    assert "is already a complete run" in part("0:3").stderr


def test_a_folder_of_parts_says_what_it_is_to_every_command(bismut, tmp_path):
    assert bismut(*RUN, "--out", "run", "--blocks", "0:2").exit_code == 0
    for line in ("resume", "extend --steps 3", "plot", "verify --data", "verify", "repair", "view", "export --to csv"):
        words = line.split()
        refused = bismut(words[0], "run", *words[1:])
        assert refused.exit_code == 2, words
        assert "`bismut merge run` combines them into one run" in refused.stderr, words
    with pytest.raises(StoreError, match=r"holds parts of a run, 0-2 in .*bismut merge"):
        load(tmp_path / "run")


@pytest.mark.long
def test_parts_of_another_run_are_noticed_before_anything_is_computed(bismut, tmp_path, monkeypatch):
    """Another seed, parameter or length; that a node has other software is left to `merge`."""
    words = (*RUN, "--out", "run", "--blocks")
    assert bismut(*words, "0:2").exit_code == 0
    monkeypatch.setattr("bismut.cli.runs.execute.run_and_store", lambda *given, **more: pytest.fail("it was computed"))
    for changed in (("--seed", "4"), ("--set", "frequency=3"), ("--steps", "61")):
        refused = bismut(*words, "2:4", *changed)
        assert refused.exit_code == 2, changed
        assert "holds another run" in refused.stderr
        assert [folder.name for folder in (tmp_path / "run" / "parts").iterdir()] == ["0-2"]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(provenance, "_version", lambda name: "9.9")
    assert bismut(*words, "2:6").exit_code == 0
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert "--force" in bismut("merge", "run").stderr
    assert bismut("merge", "run", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--blocks", "3:3"), "A < B"),
        (("--blocks", "0:3"), "--blocks needs --out"),
        (("--blocks", "0:3", "--out", "x", "--until", "energy=0.1"), "omit one of them"),
        (("--workers", "2", "--cluster", "local:2"), "not both"),
        (("--insecure",), "--insecure needs --cluster"),
        (("--cluster", "local:none"), "tcp://host:port, tls://host:port or local:N"),
        (("--cluster", "tcp://192.0.2.7:8786"), "--insecure"),
    ],
)
def test_wrong_use_is_told_before_anything_is_computed(bismut, tmp_path, words, why):
    found = bismut(*RUN, *words)
    assert found.exit_code == 2
    assert why in found.stderr
    assert not list(tmp_path.iterdir())


def test_only_this_machine_or_locked_wires_are_reached_by_default():
    for address in ("tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:3", "tls://192.0.2.7:8786", "inproc://a/b"):
        check_address(address, insecure=False)
    for address in ("tcp://192.0.2.7:8786", "ws://192.0.2.7:1", "tcp://0.0.0.0:1"):
        check_address(address, insecure=True)
        with pytest.raises(BismutError, match="--insecure"):
            check_address(address, insecure=False)


@pytest.mark.long
def test_a_driver_killed_with_its_workers_at_work_is_resumed(bismut, process, tmp_path):
    """Long blocks in two processes; the driver dies when the first of them is committed, its workers follow, and another executor goes on."""
    long = ("run", "pendulum", "--trajectories", "32", "--steps", "400000", "--block", "4", "--observe", "energy", "--every", "100000")
    driver = process(*long, "--out", "run", "--workers", "2")
    manifest, end = tmp_path / "run" / "manifest.jsonl", time.monotonic() + 200
    driver.wait_for(lambda: manifest.exists() and '"what":"blocks"' in manifest.read_text())
    workers = [int(pid) for pid in Path(f"/proc/{driver.pid}/task/{driver.pid}/children").read_text().split()]
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    kept = len(open_run(tmp_path / "run").blocks)
    assert 0 < kept < 8
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < end
        time.sleep(0.05)
    resumed = bismut("resume", "run", "--json")
    assert resumed.exit_code == 0, resumed.stderr
    assert f'"computed": {8 - kept}' in resumed.stdout
    assert bismut(*long, "--out", "whole").exit_code == 0
    same(tmp_path / "whole", tmp_path / "run")
