"""A single file is there whole or not at all, and what was computed is told of before anything is written."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

from bismut.cli.main import app
from bismut.cli.measured import finish
from bismut.errors import DiskFullError, WriteError
from bismut.figures.style import styled, write_picture
from bismut.store import keep_file, write_file
from bismut.views.scene import Scene
from bismut.views.view import View

DRAWS = xarray.DataTree.from_dict({"/posterior": xarray.Dataset({"x": (("chain", "draw"), np.arange(6.0).reshape(2, 3))})})


class Drawn:
    """What `bm.sample` returns, without drawing."""

    trusted = True
    tree = DRAWS

    def __str__(self):
        return "the summary"


@pytest.fixture
def drawn(monkeypatch):
    """`bismut sample` with these draws, to a file."""
    monkeypatch.setattr("bismut.samplers.sample", lambda *given, **more: Drawn())
    return lambda file: CliRunner().invoke(app, ["sample", "model.py:log_density", "--out", file])


@pytest.fixture
def full(tmp_path, monkeypatch):
    """A folder `tiny` in which no bytes can be written, as on a full disk; other places take them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    (tmp_path / "tiny").mkdir()
    (tmp_path / "model.py").write_text("space = None\nlog_density = lambda x: 0.0\n")
    write = os.write

    def limited(handle: int, data) -> int:
        if Path(os.readlink(f"/proc/self/fd/{handle}")).parent == tmp_path / "tiny":
            if len(data) < 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(handle, data[: len(data) // 2])
        return write(handle, data)

    monkeypatch.setattr(os, "write", limited)
    return tmp_path / "tiny"


def test_a_file_replaces_another_only_when_it_is_whole(full):
    (full / "a").write_text("before")
    with pytest.raises(DiskFullError, match=r"tiny/a cannot be written: No space left on device\.$"):
        write_file(full / "a", b"after")
    assert (full / "a").read_text() == "before"
    assert os.listdir(full) == ["a"]
    assert write_file(full.parent / "new" / "a", b"after").read_bytes() == b"after"
    with pytest.raises(WriteError, match="cannot be written"):
        write_file(full, b"")


def test_what_exists_nowhere_else_is_kept_elsewhere(full, monkeypatch):
    with pytest.raises(DiskFullError, match=r"It is kept in .*other"):
        keep_file(full / "a", b"draws")
    (kept,) = (full.parent / "other").glob("bismut-*/a")
    assert kept.read_bytes() == b"draws"
    for name in ("tempfile.gettempdir", "pathlib.Path.cwd", "pathlib.Path.home"):
        monkeypatch.setattr(name, lambda: str(full.parent / "none"))
    with pytest.raises(DiskFullError, match="No other place took it"):
        keep_file(full / "a", b"draws")


def test_draws_for_a_full_disk_are_kept_elsewhere(full, drawn):
    pytest.importorskip("h5netcdf")
    done = drawn("tiny/s.nc")
    assert done.exit_code == 1
    assert "the summary" in done.stdout
    assert "tiny/s.nc cannot be written: No space left on device" in done.stderr
    (kept,) = (full.parent / "other").glob("bismut-*/s.nc")
    assert str(kept) in done.stderr
    with xarray.open_datatree(kept, engine="h5netcdf") as tree:
        np.testing.assert_array_equal(tree["posterior"]["x"], DRAWS["posterior"]["x"])
    assert not os.listdir(full)


def test_a_folder_for_draws_is_made(full, drawn):
    pytest.importorskip("h5netcdf")
    assert drawn("new/deep/s.nc").exit_code == 0
    assert os.listdir("new/deep") == ["s.nc"]
    refused = drawn("model.py/s.nc")
    assert (refused.exit_code, "is a file" in refused.stderr) == (2, True)


def test_a_real_full_disk_does_not_end_the_process(mounted, tmp_path, monkeypatch, drawn):
    """HDF5 would: it is given memory."""
    pytest.importorskip("h5netcdf")
    disk = mounted("size=64k")
    (disk / "filling").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - 2**12))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "model.py").write_text("space = None\nlog_density = lambda x: 0.0\n")
    done = drawn(str(disk / "s.nc"))
    assert (done.exit_code, "No space left" in done.stderr) == (1, True)
    assert os.listdir(disk) == ["filling"]
    assert len(list(tmp_path.glob("bismut-*/s.nc"))) == 1


class Measured:
    """What the commands that measure answers print and draw."""

    def __str__(self):
        return "the result"

    def figure(self, file, dark):
        with styled(dark) as plt:
            write_picture(plt.figure(), file)


def test_results_are_printed_before_a_picture_fails(full, capsys):
    pytest.importorskip("matplotlib")
    with pytest.raises(DiskFullError, match=r"tiny/t\.png cannot be written: No space left on device"):
        finish(Measured(), True, False, Path("tiny/t.png"))
    assert "the result" in capsys.readouterr().out
    assert not os.listdir(full)
    finish(Measured(), True, False, Path("new/t.svg"))
    assert Path("new/t.svg").read_text().startswith("<?xml")


def test_a_page_is_written_whole(full):
    shown = View(Scene("a page", np.zeros(1), []))
    vars(shown)["html"] = "⟨page⟩"
    with pytest.raises(DiskFullError, match=r"tiny/page\.html cannot be written"):
        shown.save(full / "page.html")
    assert not os.listdir(full)
    assert shown.save(full.parent / "page.html").read_text(encoding="utf-8") == "⟨page⟩"
