"""What is missing or altered is reported, with its place, and never read as numbers."""

import os
import random

import numpy as np
import pytest
import xarray
import zarr

import bismut as bm
from bismut.errors import StoreError
from bismut.store import LabelledArray, ZarrGroup, claim, open_run, read_run, repair, verify_data
from tests.store import writers


@pytest.fixture
def run(tmp_path):
    """A finished run with documents, blocks, a checkpoint and results of all kinds of numbers."""
    with claim(tmp_path / "a", {"run.toml": "steps = 3\n"}, asked={"trajectories": 6}) as run:
        for block in range(2):
            run.commit(0, block, writers.arrays(block), {"block": block})
        run.checkpoint(0, 2, writers.arrays(2), {"step": 1})
        run.finish(results=everything(), documents={"provenance.json": "{}"}, done={"trajectories": 6})
    return tmp_path / "a"


def everything() -> ZarrGroup:
    time = np.linspace(0.0, 1.0, 5)
    numbers = {
        "mean": LabelledArray(("time", "axis"), np.arange(10.0).reshape(5, 2)),
        "count": LabelledArray(("time",), np.arange(5)),
        "seen": LabelledArray(("time",), time > 0.5),
        "mode": LabelledArray(("time",), time.astype(np.complex64)),
        "who": LabelledArray(("time",), np.array(["a", "β", "", "long word", "e"])),
        "one": LabelledArray((), np.float32(2.5)),
        "none": LabelledArray(("nothing",), np.zeros(0)),
        "time": LabelledArray(("time",), time),
    }
    return ZarrGroup(
        {"zeta": ZarrGroup(numbers, {"words": "of all kinds"}), "alpha": ZarrGroup({"mean": LabelledArray(("time",), time)})}, {"outcome": "fine"}
    )


def everything_read(path) -> None:
    """All that can be read of a run."""
    stored = open_run(path)
    stored.text("run.toml"), stored.text("provenance.json"), stored.text("README.txt")
    for variant, block in stored.blocks:
        stored.block(variant, block)
    for variant, block in stored.checkpoints:
        stored.checkpoint(variant, block)
    bm.load(path).load()


def committed_files(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def test_every_flipped_bit_is_noticed(run):
    """One random bit in each file, and forty in the manifest: reading fails, and `verify_data` names the file."""
    chance = random.Random(3)
    files = committed_files(run)
    assert len(files) > 25
    for file in [*files, *[run / "manifest.jsonl"] * 39]:
        whole = file.read_bytes()
        if not whole:
            continue
        at = chance.randrange(len(whole))
        file.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :])
        if file.name == "manifest.jsonl" and at == len(whole) - 1:
            pass  # without its newline the last line is torn, not altered: the next test
        else:
            with pytest.raises(StoreError, match=file.name):
                everything_read(run)
            report = verify_data(run) if file.name != "manifest.jsonl" or open_run_fails(run) else None
            assert report is not None
            assert not report.ok
            assert str(file) in str(report)
        file.write_bytes(whole)
    everything_read(run)
    assert verify_data(run).ok


def open_run_fails(path) -> bool:
    with pytest.raises(StoreError):
        open_run(path)
    return True


def test_truncated_and_deleted_files_are_named(run):
    """Of each file the end is cut off, then all of it: nothing is filled in."""
    for file in committed_files(run):
        if file.name == "manifest.jsonl":
            continue
        whole = file.read_bytes()
        for left in (whole[:-1], whole[: len(whole) // 2], b"", None):
            file.unlink()
            if left is not None:
                file.write_bytes(left)
            with pytest.raises(StoreError, match=file.name):
                everything_read(run)
            assert f"{file} " in str(verify_data(run))
            file.write_bytes(whole)
    assert verify_data(run).ok


def test_damage_that_comes_after_opening_is_noticed_when_numbers_are_read(run):
    tree = bm.load(run)
    assert (tree["alpha"]["mean"] == np.linspace(0.0, 1.0, 5)).all()
    again = bm.load(run)
    chunk = run / "statistics" / "alpha" / "mean" / "c" / "0"
    whole = bytearray(chunk.read_bytes())
    whole[3] ^= 1
    chunk.write_bytes(whole)
    with pytest.raises(StoreError, match="alpha/mean/c/0 is altered"):
        again["alpha"]["mean"].values  # noqa: B018
    chunk.unlink()
    with pytest.raises(StoreError, match="alpha/mean/c/0 is missing"):
        bm.load(run)


def test_plain_xarray_opens_what_was_written_and_notices_altered_chunks(run):
    """Any reader of Zarr 3 finds the same numbers; its codec knows the checksum of a chunk. That a chunk is missing only `load` can know."""
    ours, theirs = bm.load(run), xarray.open_datatree(run / "statistics", engine="zarr", consolidated=False)
    for name in ("mean", "count", "seen", "mode", "one", "none", "time"):
        assert ours["zeta"][name].dtype == theirs["zeta"][name].dtype
        assert ours["zeta"][name].dims == theirs["zeta"][name].dims
        np.testing.assert_array_equal(ours["zeta"][name], theirs["zeta"][name])
    assert theirs["zeta"]["who"].values.tolist() == ours["zeta"]["who"].values.tolist() == ["a", "β", "", "long word", "e"]
    packed = xarray.open_datatree(zarr.storage.ZipStore(run / "blocks" / "0-1.zip", mode="r"), engine="zarr", consolidated=False)
    np.testing.assert_array_equal(packed["energy"]["mean"], writers.arrays(1)["energy"]["mean"])
    chunk = run / "statistics" / "zeta" / "mean" / "c" / "0" / "0"
    whole = bytearray(chunk.read_bytes())
    whole[0] ^= 1
    chunk.write_bytes(whole)
    with pytest.raises(ValueError, match="checksum"):
        xarray.open_datatree(run / "statistics", engine="zarr", consolidated=False)["zeta"]["mean"].values  # noqa: B018


def test_order_is_kept(run):
    """Groups, arrays, blocks and observers come back in the order in which they went, not in that of the disk."""
    assert list(bm.load(run).children) == ["zeta", "alpha"]
    assert list(bm.load(run)["zeta"].data_vars) == ["mean", "count", "seen", "mode", "who", "one", "none"]
    many = [f"{number * 7 % 10:02d}" for number in range(9)]
    with claim(run.with_name("b")) as writing:
        for block in (3, 0, 2, 1, 10):
            writing.commit(1, block, {name: np.zeros(1) for name in many})
        writing.finish(results=ZarrGroup({name: ZarrGroup({kind: np.zeros(1) for kind in many}) for name in many}))
    assert list(bm.load(run.with_name("b")).children) == many
    assert list(bm.load(run.with_name("b"))[many[0]].data_vars) == many
    assert list(open_run(run.with_name("b")).block(1, 10)) == many
    assert list(open_run(run.with_name("b")).blocks) == [(1, block) for block in (0, 1, 2, 3, 10)]


def test_a_torn_manifest_is_what_it_was_before_its_last_line(run):
    """Cut anywhere within its last line: the line does not count, and the next writer cuts it off."""
    manifest = run / "manifest.jsonl"
    whole = manifest.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for end in (last + 1, last + 30, len(whole) - 2, len(whole) - 1):
        manifest.write_bytes(whole[:end])
        stored = open_run(run)
        assert stored.state == "interrupted"
        assert len(stored.blocks) == 2
        assert "statistics" not in stored.committed
        assert "half a line" in str(verify_data(run))
        with pytest.raises(StoreError, match="holds no statistics yet: interrupted"):
            bm.load(run)
        with claim(run, resume=True) as writing:
            writing.finish(results=everything(), documents={"provenance.json": "{}"})
        assert verify_data(run).ok
        everything_read(run)


def test_an_altered_manifest_is_trusted_as_far_as_it_goes(run):
    """A line left out, moved or changed, though each line is well-formed: what comes before counts, nothing is added."""
    manifest = run / "manifest.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    for wrong in (lines[:3] + lines[4:], [*lines[:2], lines[3], lines[2], *lines[4:]], [*lines[:3], lines[2], *lines[3:]]):
        manifest.write_bytes(b"".join(wrong))
        with pytest.raises(StoreError, match=r"manifest.jsonl, line \d is altered"):
            open_run(run)
        with pytest.raises(StoreError, match="is altered"):
            claim(run, resume=True)
        assert "manifest.jsonl" in verify_data(run).corrupt
        with pytest.raises(StoreError):
            read_run(run)


def test_large_arrays_are_cut_and_read_in_parts(tmp_path, monkeypatch):
    """Chunks that do not divide the axes, and every kind of slice: lazily the same numbers, and only the chunks that are needed."""
    monkeypatch.setattr("bismut.store.zarr_writer.CHUNK", 8 * 6)
    values = np.arange(7 * 4 * 3).reshape(7, 4, 3) * 1.5
    with claim(tmp_path / "a") as run:
        run.finish(results=ZarrGroup({"a": ZarrGroup({"x": LabelledArray(("i", "j", "k"), values), "line": np.arange(50.0)})}))
    assert len(list((tmp_path / "a").rglob("x/c/*/*/*"))) == 14
    for part in (np.s_[2], np.s_[1:6:2, ::-1], np.s_[:, 3, 1], np.s_[5:2], np.s_[[6, 0, 3]], np.s_[-1, :, [0, 2]], np.s_[..., 2]):
        lazy = bm.load(tmp_path / "a")["a"]["x"]
        np.testing.assert_array_equal(lazy[part] if not isinstance(part, tuple) else lazy.values[part], values[part])
    for part in (np.s_[1:6:2, ::-1], np.s_[:, 3, 1], np.s_[2:3, 1:4, 0:2]):
        np.testing.assert_array_equal(bm.load(tmp_path / "a")["a"]["x"][part], values[part])
    lazy = bm.load(tmp_path / "a")["a"]["line"]
    for chunk in (tmp_path / "a" / "statistics" / "a" / "line" / "c").iterdir():
        if chunk.name != "0":
            os.truncate(chunk, 1)
    np.testing.assert_array_equal(lazy[:6], np.arange(6.0))
    with pytest.raises(StoreError):
        lazy[:7].values  # noqa: B018


@pytest.mark.parametrize(
    "left", [lambda text: "", lambda text: text[:100], lambda text: text.replace("schema", "schemb", 1)], ids=["empty", "torn", "altered"]
)
def test_a_manifest_without_its_beginning_costs_nothing_else(run, left):
    """Nothing is vouched for then: that is said, and neither a repair nor a new run touches what is there."""
    (run / "manifest.jsonl").write_text(left((run / "manifest.jsonl").read_text()))
    before = {file: file.read_bytes() for file in committed_files(run)}
    assert "manifest.jsonl" in verify_data(run).corrupt
    with pytest.raises(StoreError, match="nothing was changed"):
        repair(run, lambda stored: pytest.fail("no request can be made"), command="repair")
    with pytest.raises(StoreError, match="exists already"):
        claim(run)
    with pytest.raises(StoreError, match="manifest"):
        claim(run, resume=True)
    assert before == {file: file.read_bytes() for file in committed_files(run)}
