"""Files of other programs that are odd, damaged or hostile: a state, or a sentence that names the file, in bounded time and memory."""

import random
import time

import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from bismut.sharing.import_state import read_frame
from tests.sharing.systems import SYSTEMS, trajectory

HEAD = 'Lattice="4 0 0 0 5 0 0 0 6" pbc="T T F" Properties=species:S:1:pos:R:3:orientation:R:4 Time=0.5'
ROWS = "X 0 0 0 0 0 0 1\nX 1 2 3 0 0 1 0\n"


def written(tmp_path, text: str):
    file = tmp_path / "a.extxyz"
    file.write_text(text, encoding="utf-8")
    return file


def test_what_is_right_is_read(tmp_path):
    """So that the refusals below are refusals of what they change."""
    found = read_frame(written(tmp_path, f"2\n{HEAD}\n{ROWS}"))
    assert found.x.shape == (1, 2, 3)
    assert found.box.lengths == (4.0, 5.0, np.inf)


@pytest.mark.parametrize("comment", ["a" * 50_000, "a " * 25_000, "a" + " " * 50_000, 'a="' * 20_000, "=" * 50_000, '"' * 50_001, "é=" * 25_000])
def test_a_long_comment_is_read_in_the_time_of_its_length(tmp_path, comment):
    clock = time.process_time()
    found = read_frame(written(tmp_path, f"1\n{comment}\nX 0 0 0\n"))
    assert found.x.shape == (1, 1, 3)
    assert time.process_time() - clock < 1


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("4 0 0 0 5 0 0 0 6", "4 0 0"),
        ("4 0 0 0 5 0 0 0 6", "a b c d e f g h i"),
        ("4 0 0 0 5 0 0 0 6", "0 0 0 0 0 0 0 0 0"),
        ("4 0 0 0 5 0 0 0 6", "nan 0 0 0 5 0 0 0 6"),
        ("4 0 0 0 5 0 0 0 6", "4 1 0 0 5 0 0 0 6"),
        ('"T T F"', '"T"'),
        ("2\n", "²\n"),
        ("2\n", "-2\n"),
        ("2\n", f"{10**30}\n"),
        ("2\n", f"{'9' * 5000}\n"),
        ("pos:R:3", "pos:R:2"),
        ("pos:R:3", "pos:R:0"),
        ("pos:R:3", "pos:R:-3"),
        ("pos:R:3", f"pos:R:{10**15}"),
        ("pos:R:3", "place:R:3"),
        ("orientation:R:4", "orientation:R:3:x:R:1"),
        ("orientation:R:4", "orientation:R"),
        ("X 0 0 0 0 0 0 1", "X 0 0 0 0 0 0 0"),
        ("X 0 0 0 0 0 0 1", "X 0 0 nan 0 0 0 1"),
        ("X 0 0 0 0 0 0 1", "X 0 0 0 inf 0 0 1"),
        ("X 0 0 0 0 0 0 1", "X"),
    ],
)
def test_odd_lattices_counts_and_orientations_are_refused(tmp_path, was, becomes):
    text = f"2\n{HEAD}\n{ROWS}"
    assert was in text
    with pytest.raises(BismutError):
        read_frame(written(tmp_path, text.replace(was, becomes, 1)))


@pytest.mark.parametrize("ending", ["extxyz", "gsd"])
def test_a_damaged_file_gives_a_state_or_a_sentence(tmp_path, ending):
    """Bytes changed, cut out and doubled, a few hundred times."""
    if ending == "gsd":
        pytest.importorskip("gsd.hoomd")
    scheme, chance, refused = bm.VariationalEuler(SYSTEMS["bodies"]()), random.Random(5), []
    (good,) = bm.export(trajectory(scheme), tmp_path / f"good.{ending}", system=scheme)
    data, file = good.read_bytes(), tmp_path / f"bad.{ending}"
    for _ in range(150):
        bad = bytearray(data)
        for _ in range(chance.choice((1, 1, 4))):
            at = chance.randrange(len(bad))
            end = min(len(bad), at + chance.choice((1, 4, 40)))
            bad[at:end] = chance.choice([b"\xff" * (end - at), b"", bytes(end - at), chance.randbytes(end - at), bad[at:end] * 2])
        file.write_bytes(bad)
        try:
            assert read_frame(file, chance.choice((-1, 0, 1))).x.shape[2] == 3
        except BismutError as problem:
            refused.append(str(problem))
    assert len(refused) > 20
    assert all(str(file) in words for words in refused)
