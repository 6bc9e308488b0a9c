"""Numbers of two programs are not mixed without a word: the code of bismut is part of what a run is, whatever its version says."""

import numpy as np
import pytest

import bismut as bm
from bismut.documents import plain_json
from bismut.ensembles import block_job, request
from bismut.errors import ProcessError, StoreError
from bismut.function_hash import package_hash
from bismut.function_hash.fingerprint import hash_of
from bismut.store import claim, open_run, provenance, read_provenance

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
    monkeypatch.setattr(provenance, "package_hash", lambda: "0123456789abcdef")
    words = f"the code of bismut has the hash {package_hash()} there, 0123456789abcdef here"
    with pytest.raises(StoreError, match=rf"{words}\nTo continue anyway.*--force"):
        bm.simulate(SCHEME, START, **RUN, store=path)
    with pytest.raises(StoreError, match=words):
        bm.simulate(SCHEME, START, **RUN | {"steps": 6}, store=path, extend=True)
    bm.simulate(SCHEME, START, **RUN | {"steps": 6}, store=path, extend=True, force=True)
    assert read_provenance(open_run(path))["taken_up"][-1]["overridden"] == [words]


def test_other_code_is_said_once_whatever_else_it_changes(tmp_path, monkeypatch):
    """Fingerprints of functions follow the code that made them: one sentence for all of them, and one for each difference of another kind."""
    path = tmp_path / "a"
    bm.simulate(SCHEME, START, **RUN, store=path)
    monkeypatch.setattr(provenance, "package_hash", lambda: "0123456789abcdef")
    other = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), noise=lambda q: 0.3 * q))
    start = other.start(np.ones(1), velocity=np.zeros(1))
    with pytest.raises(StoreError) as refused:
        bm.simulate(other, start, **RUN | {"observe": {"energy": bm.kinetic_energy}, "seed": 1}, store=path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 3
    assert lines[1].strip().startswith("the code of bismut has the hash")
    assert lines[1].endswith("so that it cannot be said whether scheme, observe.energy are the same")
    assert "--force" in lines[2]
    with pytest.raises(StoreError) as refused:
        bm.simulate(other, start, **RUN | {"step": 0.2}, store=path)
    assert [line.strip() for line in str(refused.value).splitlines() if "step" in line] == ["step is 0.1 there, 0.2 here"]


def test_a_run_that_does_not_record_its_code_loads_and_says_what_to_do_when_resumed(tmp_path):
    """Runs of earlier versions."""
    path = tmp_path / "a"
    bm.simulate(SCHEME, START, **RUN, store=path)
    made = read_provenance(open_run(path))
    del made["identity"][provenance.CODE]
    with claim(path, resume=True) as run:
        run.commit_documents({"provenance.json": plain_json(made)}, state="complete")
    assert bm.load(path)["energy"]["mean"].shape == (5,)
    with pytest.raises(StoreError, match=r"code of bismut is not recorded there, because an earlier version wrote the run\n.*force=True"):
        bm.simulate(SCHEME, START, **RUN, store=path)
    bm.simulate(SCHEME, START, **RUN, store=path, force=True)


def test_a_worker_with_other_code_of_the_same_version_is_refused(monkeypatch):
    asked = request(SCHEME, START, **RUN)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(block_job, "package_hash", lambda: "0123456789abcdef")
        make, given = block_job.BlockJob(asked, keeps=False, ends=False).__reduce__()
    with pytest.raises(ProcessError, match=rf"code of bismut {package_hash()} instead of 0123456789abcdef"):
        make(*given)
