"""simulate(..., store=folder): begun, gone on with, read, extended or refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError, StoreError, WriteError
from bismut.gallery import entry
from bismut.store import RunWriter, open_run, read_provenance, verify_data
from bismut.store.files import folder_of


def scheme(k=0.5):
    return bm.Midpoint(bm.mechanical(bm.Euclidean(1), potential=lambda q: k * q @ q, noise=lambda q: 0.3 * q))


def simulate(path, k=0.5, **changed):
    made = scheme(k)
    run = {"step": 0.05, "steps": 60, "trajectories": 20, "block": 8, "every": 7, "seed": 2, "observe": {"x": lambda s: s.q[0]}, "store": path}
    return bm.simulate(made, made.start(jnp.ones(1), velocity=jnp.zeros(1)), **(run | changed))


def same(a, b):
    np.testing.assert_array_equal(a.x.mean, b.x.mean)
    np.testing.assert_array_equal(a.final.q, b.final.q)
    assert a.outcome == b.outcome


def test_a_call_that_fails_goes_on_when_it_is_made_again(tmp_path, monkeypatch, capsys):
    path, alone = tmp_path / "a", simulate(None)
    real = RunWriter.commit

    def failing(self, variant, block, *rest):
        if block == 1:
            raise RuntimeError("something else")
        real(self, variant, block, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(RunWriter, "commit", failing)
        with pytest.raises(RuntimeError, match="something else"):
            simulate(path, executor=bm.Threads(1))
    assert open_run(path).state == "failed"
    assert (0, 1) not in open_run(path).blocks
    same(simulate(path), alone)
    assert open_run(path).state == "complete"
    assert verify_data(path).ok
    with monkeypatch.context() as patched:
        patched.setattr("bismut.ensembles.block_job.run_block", lambda *_: pytest.fail("it was computed"))
        capsys.readouterr()
        same(simulate(path), alone)
    assert "is complete; nothing is computed" in capsys.readouterr().err
    tree = bm.load(path)
    assert (tree.attrs["state"], tree.attrs["done"]) == ("complete", {"trajectories": 20, "steps": 60})


def test_a_complete_run_is_read_and_not_renewed_by_force(tmp_path, monkeypatch):
    """With other functions, force reads what is there: nothing is computed, and the run stays the one it was."""
    path, alone = tmp_path / "a", simulate(tmp_path / "a")
    before = (path / "manifest.jsonl").read_bytes()
    monkeypatch.setattr("bismut.ensembles.block_job.run_block", lambda *_: pytest.fail("it was computed"))
    with pytest.raises(StoreError, match="scheme is another"):
        simulate(path, k=0.7)
    same(simulate(path, k=0.7, force=True), alone)
    assert (path / "manifest.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", [3, b"a", 1.5, True])
def test_a_folder_has_a_name(name):
    """As simulate(store=...), save and load ask; types are looked at here before they do."""
    with pytest.raises(DomainError, match="store must be the name of a folder, got "):
        folder_of(name, "store")


def test_another_run_is_refused_by_name(tmp_path):
    path = tmp_path / "a"
    simulate(path)
    for changed, words in (
        ({"seed": 3}, "seed is 2 there, 3 here"),
        ({"block": 4}, "block is 8 there, 4 here"),
        ({"k": 0.6}, "scheme is another"),
        ({"observe": {"x": lambda s: 2 * s.q[0]}}, "observe.x is another"),
        ({"observe": {"y": lambda s: s.q[0]}}, "observe.y is not observed there"),
        ({"mode": "xla"}, "engine is native there, xla here"),
        ({"steps": 70}, "extend=True"),
    ):
        with pytest.raises(StoreError, match=words):
            simulate(path, **changed)
    with pytest.raises(StoreError, match="cannot be mixed"):
        simulate(path, seed=3, force=True)
    assert open_run(path).state == "complete"


def test_more_is_asked_of_a_kept_run(tmp_path):
    path = tmp_path / "a"
    simulate(path, steps=39, trajectories=11)
    same(simulate(path, extend=True), simulate(None))
    (taken,) = read_provenance(open_run(path))["taken_up"]
    assert taken["overridden"] == []


@pytest.mark.long
def test_a_run_that_is_extended_is_cut_and_observed_as_it_was(tmp_path):
    """Stride and size of a block would be chosen by its length; nobody has to repeat what was chosen for the shorter one."""
    path, plain = tmp_path / "a", {"every": None, "block": None}
    simulate(path, steps=40, trajectories=20, **plain)
    longer = simulate(path, steps=900, trajectories=3000, extend=True, **plain)
    same(longer, simulate(None, steps=900, trajectories=3000, every=1, block=20))
    assert bm.simulate(scheme(), longer.request.starts[0], step=0.05, steps=900, trajectories=3000).request.size != longer.request.size == 20


def test_functions_may_be_said_to_be_the_same(tmp_path):
    path = tmp_path / "a"
    simulate(path, steps=39)
    simulate(path, k=0.51, extend=True, force=True)
    assert read_provenance(open_run(path))["taken_up"][-1]["overridden"] == ["scheme is another: its functions or numbers differ"]


def test_damage_is_mended_with_a_warning(tmp_path):
    path = tmp_path / "a"
    first = simulate(path)
    block = path / "blocks" / "0-2.zip"
    data = block.read_bytes()
    block.write_bytes(data[:-1])
    with pytest.warns(RuntimeWarning, match=r"0-2\.zip has .* it is truncated or altered"):
        same(simulate(path), first)
    assert block.read_bytes() == data


def test_a_sweep_says_how_far_each_value_came(tmp_path, monkeypatch):
    """Where writing fails, numbers are there, the rest is intact, and what was done is counted for each value."""
    made = bm.Midpoint(bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: parameters["k"] * q @ q, parameters={"k": 1.0}))
    start = made.start(jnp.ones(1), velocity=jnp.zeros(1))
    run = {"step": 0.05, "steps": 20, "trajectories": 20, "block": 8, "sweep": {"k": [0.5, 1.0]}, "executor": bm.Threads(1)}
    alone = bm.simulate(made, start, **run)
    real = RunWriter.commit

    def full(self, variant, block, *rest):
        if (variant, block) == (1, 1):
            raise WriteError("no room")
        real(self, variant, block, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(RunWriter, "commit", full)
        with pytest.warns(RuntimeWarning, match="no room"):
            cut = bm.simulate(made, start, store=tmp_path / "a", **run)
    assert cut.trajectories_run == [20, 16]
    assert cut.outcome.cause == "disk"
    assert str(open_run(tmp_path / "a")) == "failed, 20, 16 of 20 trajectories, 20 of 20 steps, 4 blocks committed"
    with pytest.warns(UserWarning, match="not complete: failed"):
        bm.load(tmp_path / "a")
    np.testing.assert_array_equal(bm.simulate(made, start, store=tmp_path / "a", **run).energy.mean, alone.energy.mean)


def test_a_million_trajectories_take_less_than_50_megabytes(tmp_path):
    """Statistics only: as many blocks as there would be, each of the size that a block has."""
    found = entry("pendulum")
    made = found.scheme(found.build())
    observe = {"energy": bm.energy, "temperature": bm.temperature, "mean": bm.time_average(bm.energy)}
    run = {"step": found.step, "steps": 200, "trajectories": 4096, "block": 4096, "keep_final": False, "observe": observe}
    bm.simulate(made, found.start(made), store=tmp_path / "a", **run)
    block = (tmp_path / "a" / "blocks" / "0-0.zip").stat().st_size
    assert 250 * (block + 500) < 50e6
    assert sum(file.stat().st_size for file in (tmp_path / "a").rglob("*") if file.is_file()) < 200_000
