"""A stored run is data: nothing in it can execute code, lead out of its folder, or be taken for what bismut writes."""

import base64
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

import bismut as bm
from bismut.errors import StoreError
from bismut.store import claim, open_run, verify_data
from bismut.store.files import checksum_of
from bismut.store.manifest import Manifest
from bismut.store.zarr_writer import encode
from tests.store import writers


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.mkdir, (str(self.file),)


def forged(folder, files: dict[str, bytes], places=None):
    """A run with a right manifest for whatever files: who forges one can compute checksums."""
    folder.mkdir()
    manifest = Manifest.create(folder)
    manifest.append({"what": "documents", "schema": 2, "state": "running", "asked": {}, "places": {}})
    for key, data in files.items():
        (folder / "statistics" / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / "statistics" / key).write_bytes(data)
    seals = {"statistics": {key: checksum_of(data) for key, data in files.items()}} if places is None else places
    manifest.append({"what": "results", "state": "complete", "places": seals})
    return folder


def right_files() -> dict[str, bytes]:
    return dict(encode({"a": {"x": np.arange(4.0)}}))


def test_a_forged_run_that_is_right_is_read(tmp_path):
    """So that the refusals below are refusals of what they change."""
    assert (bm.load(forged(tmp_path / "a", right_files()))["a"]["x"] == np.arange(4.0)).all()


def test_zarr_2_with_a_pickle_filter_is_refused_before_it_is_opened(tmp_path):
    """As a bare folder, and with a manifest that vouches for it: no code runs."""
    mark = tmp_path / "mark"
    bomb = pickle.dumps(Bomb(mark))
    array = {
        "zarr_format": 2,
        "shape": [1],
        "chunks": [1],
        "dtype": "|O",
        "fill_value": base64.b64encode(bomb).decode(),
        "order": "C",
        "filters": [{"id": "pickle"}],
        "compressor": None,
    }
    files = {".zgroup": b'{"zarr_format": 2}', "x/.zarray": json.dumps(array).encode(), "x/.zattrs": b"{}", "x/0": bomb}
    for key, data in files.items():
        (tmp_path / "bare" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bare" / key).write_bytes(data)
    with pytest.raises(StoreError, match="no result or run"):
        bm.load(tmp_path / "bare")
    with pytest.raises(StoreError, match=r"zarr.json is not among"):
        bm.load(forged(tmp_path / "a", files))
    with pytest.raises(StoreError, match="belongs to no array"):
        bm.load(forged(tmp_path / "b", right_files() | files))
    assert not verify_data(tmp_path / "b").ok
    assert not mark.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"codecs": [{"name": "pickle"}]},
        {"codecs": [{"name": "numcodecs.pickle"}, {"name": "crc32c"}]},
        {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]},
        {"codecs": [{"name": "sharding_indexed", "configuration": {}}]},
        {"codecs": []},
        {"data_type": "object"},
        {"data_type": {"name": "numpy.void", "configuration": {}}},
        {"data_type": "variable_length_bytes"},
        {"zarr_format": 2},
        {"zarr_format": 3.0},
        {"node_type": "link"},
        {"shape": [10**15]},
        {"shape": [-1]},
        {"shape": [True]},
        {"shape": "4"},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0]}}},
        {"chunk_grid": {"name": "rectilinear", "configuration": {"chunk_shape": [4]}}},
        {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}},
        {"storage_transformers": [{"name": "any"}]},
        {"attributes": {"scale_factor": 2.0}},
        {"dimension_names": [None]},
        {"must_understand": True},
        {"fill_value": 0.0},
    ],
)
def test_metadata_that_bismut_does_not_write_is_refused(tmp_path, change):
    files = right_files()
    files["a/x/zarr.json"] = json.dumps(json.loads(files["a/x/zarr.json"]) | change).encode()
    with pytest.raises(StoreError, match=r"a/x/zarr.json"):
        bm.load(forged(tmp_path / "a", files))
    assert not verify_data(tmp_path / "a").ok


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"[" * 100_000, b"\xff", b'{"attributes": 3}', b'{"zarr_format": 3, "node_type": "group", "attributes": {"order": ["a", "a"]}}'],
)
def test_what_is_no_metadata_is_refused(tmp_path, text):
    with pytest.raises(StoreError, match=r"zarr.json"):
        bm.load(forged(tmp_path / "a", right_files() | {"zarr.json": text}))


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../secret", "a//b", "./a", "a\\..\\secret", "c:secret", "a\0b", ""])
def test_paths_that_leave_the_folder_are_refused(tmp_path, name):
    (tmp_path / "secret").write_text("secret")
    seal = checksum_of(b"secret")
    for number, places in enumerate(({name: {"": seal}}, {"statistics": {name or ".": seal}})):
        folder = forged(tmp_path / f"{number}", {}, places)
        with pytest.raises(StoreError, match="not a path within the folder"):
            open_run(folder)


def test_links_are_not_followed(tmp_path):
    """Of a file, of a folder on the way, to the very same bytes: refused; a pipe does not hang."""
    for number, victim in enumerate(("a/x/c/0", "a", "a/x/zarr.json", ".")):
        folder = forged(tmp_path / f"{number}", right_files())
        original = folder / "statistics" / victim
        moved = tmp_path / f"moved{number}"
        original.rename(moved)
        original.symlink_to(moved)
        with pytest.raises(StoreError, match="is a link"):
            bm.load(folder)["a"]["x"].load()
    folder = forged(tmp_path / "pipe", right_files())
    (folder / "statistics/a/x/c/0").unlink()
    os.mkfifo(folder / "statistics/a/x/c/0")
    with pytest.raises(StoreError, match=r"c/0 is (missing|not a regular file)"):
        bm.load(folder)["a"]["x"].load()
    (tmp_path / "linked").symlink_to(forged(tmp_path / "real", right_files()))
    assert (bm.load(tmp_path / "linked")["a"]["x"] == np.arange(4.0)).all()  # a link to a whole run is the user's own


def test_a_manifest_with_other_things_in_it_is_refused(tmp_path):
    for number, entry in enumerate(
        (
            {"places": []},
            {"places": {"a": {"": "?"}}},
            {"places": {"blocks/0-1.zip": {"": checksum_of(b"")}}, "variant": 0, "block": 2},
            {"places": {"blocks/0-1.zip": {"": checksum_of(b"")}}, "variant": "0", "block": 1},
            {"state": "won"},
            {"asked": []},
        )
    ):
        folder = forged(tmp_path / f"{number}", right_files())
        Manifest.read(folder).append(entry)
        with pytest.raises(StoreError, match=r"manifest.jsonl, line 3"):
            open_run(folder)


def test_another_schema_is_refused_by_its_number(tmp_path):
    (tmp_path / "a").mkdir()
    Manifest.create(tmp_path / "a").append({"schema": 99})
    with pytest.raises(StoreError, match="schema 99; this version of bismut reads 2"):
        open_run(tmp_path / "a")


def test_a_packed_block_is_not_unpacked_beyond_its_size(tmp_path):
    """A zip that grows when it is read is refused."""
    with claim(tmp_path / "a") as run:
        run.commit(0, 0, writers.arrays(0))
        with zipfile.ZipFile(tmp_path / "zip", "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("zarr.json", b"0" * 10**7)
        file = tmp_path / "a" / "blocks" / "0-1.zip"
        file.write_bytes((tmp_path / "zip").read_bytes())
        run._manifest.append(
            {"what": "blocks", "variant": 0, "block": 1, "record": {}, "places": {"blocks/0-1.zip": {"": checksum_of(file.read_bytes())}}}
        )
    with pytest.raises(StoreError, match="compressed"):
        open_run(tmp_path / "a").block(0, 1)
