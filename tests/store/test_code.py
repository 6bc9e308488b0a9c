"""Numbers of two programs are not mixed without a word: the code of bismut is part of what a run is, whatever its version says."""

import numpy as np
import pytest

import bismut as bm
from bismut.ensembles import request, working
from bismut.errors import ProcessError, StoreError
from bismut.sameness import package_hash
from bismut.sameness.package import hash_of
from bismut.store import claim, identity, open_run, origin_of
from bismut.store.manifest import plain_json

SCHEME = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q, noise=lambda q: 0.3 * q))
START = SCHEME.start(np.ones(1), velocity=np.zeros(1))
RUN = {"step": 0.1, "steps": 4, "trajectories": 8, "block": 4, "observe": {"energy": bm.energy}, "seed": 1}


def test_the_hash_is_of_all_python_files_and_of_nothing_else(tmp_path):
    assert hash_of(tmp_path) == "unknown"
    (tmp_path / "room").mkdir()
    (tmp_path / "a.py").write_bytes(b"x = 1\ny = 2\n")
    (tmp_path / "room" / "b.py").write_bytes(b"")
    first = hash_of(tmp_path)
    (tmp_path / "a.py").write_bytes(b"x = 1\r\ny = 2\r\n")  # as another system checks it out
    (tmp_path / "room" / "b.pyc").write_bytes(b"compiled")
    assert hash_of(tmp_path) == first
    (tmp_path / "room" / "b.py").rename(tmp_path / "b.py")
    assert hash_of(tmp_path) != first
    (tmp_path / "b.py").rename(tmp_path / "room" / "b.py")
    (tmp_path / "a.py").write_bytes(b"x = 1\ny = 3\n")
    assert hash_of(tmp_path) != first


def test_a_run_of_other_code_is_refused_by_name_and_continued_if_forced(tmp_path, monkeypatch):
    """Resumed, extended and read again; what was overridden is written down."""
    path = tmp_path / "a"
    bm.simulate(SCHEME, START, **RUN, store=path)
    monkeypatch.setattr(identity, "package_hash", lambda: "0123456789abcdef")
    words = f"the code of bismut has the hash {package_hash()} there, 0123456789abcdef here"
    with pytest.raises(StoreError, match=rf"{words}\nTo continue anyway.*--force"):
        bm.simulate(SCHEME, START, **RUN, store=path)
    with pytest.raises(StoreError, match=words):
        bm.simulate(SCHEME, START, **RUN | {"steps": 6}, store=path, extend=True)
    bm.simulate(SCHEME, START, **RUN | {"steps": 6}, store=path, extend=True, force=True)
    assert origin_of(open_run(path))["taken_up"][-1]["overridden"] == [words]


def test_a_run_that_does_not_record_its_code_loads_and_says_what_to_do_when_resumed(tmp_path):
    """Runs of earlier versions."""
    path = tmp_path / "a"
    bm.simulate(SCHEME, START, **RUN, store=path)
    made = origin_of(open_run(path))
    del made["identity"][identity.CODE]
    with claim(path, resume=True) as run:
        run.keep({"provenance.json": plain_json(made)}, state="complete")
    assert bm.load(path)["energy"]["mean"].shape == (5,)
    with pytest.raises(StoreError, match=r"code of bismut is not recorded there, because an earlier version wrote the run\n.*force=True"):
        bm.simulate(SCHEME, START, **RUN, store=path)
    bm.simulate(SCHEME, START, **RUN, store=path, force=True)


def test_a_worker_with_other_code_of_the_same_version_is_refused(monkeypatch):
    asked = request(SCHEME, START, **RUN)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(working, "package_hash", lambda: "0123456789abcdef")
        make, given = working.Work(asked, keeps=False, ends=False).__reduce__()
    with pytest.raises(ProcessError, match=rf"code of bismut {package_hash()} instead of 0123456789abcdef"):
        make(*given)
