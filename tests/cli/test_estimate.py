"""two thirds  <  what a dry run says of the disk / what the run takes there  <  one and a half"""

import json

import pytest


def pages(folder) -> int:
    """As `du` counts on most disks: whole pages, folders too."""
    return sum(4096 if place.is_dir() else -(-place.stat().st_size // 4096) * 4096 for place in (folder, *folder.rglob("*")))


@pytest.mark.parametrize(
    "words",
    [
        "oscillator --steps 60 --trajectories 24 --block 8 --every 7 --observe energy,time_average:energy,paths",
        "oscillator --steps 100 --trajectories 9000 --observe energy,q",
        "oscillator --steps 50 --trajectories 2000 --block 40 --every 1 --observe energy --no-final",
        "oscillator --steps 20 --trajectories 3000 --sweep frequency=1,2 --observe energy,autocorrelation:energy",
    ],
)
def test_a_dry_run_knows_what_the_disk_will_hold(bismut, tmp_path, words):
    planned = json.loads(bismut("run", *words.split(), "--dry-run", "--json").stdout)["plan"]["disk"]
    assert bismut("run", *words.split(), "--out", "a").exit_code == 0
    assert 2 / 3 < planned / pages(tmp_path / "a") < 1.5
