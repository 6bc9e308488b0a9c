"""A result and the folder it is kept in say the same, in every format; what is damaged, missing or in the way is said."""

import sys

import arviz
import jax
import numpy as np
import pandas
import pytest
import xarray

import bismut as bm
from bismut.errors import BismutError
from bismut.sharing import formats
from bismut.sharing.source import export_source, frames
from tests.sharing.systems import SYSTEMS, trajectory


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small run in a bath, and its folder."""
    folder = tmp_path_factory.mktemp("runs") / "bodies"
    scheme = bm.Langevin(SYSTEMS["bodies"](), temperature=0.5, friction=1.0)
    start = scheme.start((np.arange(9.0).reshape(3, 3), np.tile(np.eye(3), (3, 1, 1))), temperature=0.5)
    observe = {
        "energy": bm.energy,
        "kept": bm.paths([0, 2]),
        "spread": bm.histogram(bm.energy, range=(0, 20), bins=4),
        "each": bm.values(bm.energy),
    }
    result = bm.simulate(scheme, start, step=0.02, steps=20, trajectories=3, seed=4, every=10, observe=observe, store=folder, progress=False)
    return result, folder


@pytest.mark.parametrize("name", ["extxyz", "lammpstrj", "csv"])
def test_a_folder_is_worth_its_result(run, name, tmp_path):
    """Nothing but the folder is needed: masses, moments and box are in it. The files are the same to the byte."""
    result, folder = run
    here, there = (bm.export(what, tmp_path / place, to=name) for what, place in ((result, "a"), (folder, "b")))
    assert len(here) == len(there) > 1
    assert [file.read_bytes() for file in here] == [file.read_bytes() for file in there]


def test_one_file_for_each_kept_trajectory(run, tmp_path):
    result, _ = run
    assert [file.name for file in bm.export(result, tmp_path / "a.gsd")] == ["a-0.gsd", "a-2.gsd"]
    assert [file.name for file in bm.export(result, tmp_path / "b.gsd", trajectory=2)] == ["b.gsd"]
    (last,) = bm.export(result, tmp_path / "c.extxyz", only=["final"], trajectory=1)
    state = bm.import_state(result.request.scheme, last)
    assert all(np.allclose(a, b[1], atol=1e-13) for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(result.final), strict=True))


@pytest.mark.parametrize("name", ["kept", "final"])
def test_a_continued_run_counts_its_steps_from_the_first_start(name, tmp_path):
    """Frames of a run and of the run that continues it are those of one long run: the same numbers of steps at the same times."""
    scheme = bm.VariationalEuler(SYSTEMS["a point in a plane"]())
    start, observe = scheme.start(np.ones(2), velocity=np.ones(2)), {"kept": bm.paths([0])}
    more = {"every": 5, "observe": observe, "progress": False}
    first = bm.simulate(scheme, start, step=0.1, steps=20, t0=3.0, burn_in=5, **more)
    second = bm.simulate(scheme, continue_from=first, steps=10, store=tmp_path / "run", **more)
    one = bm.simulate(scheme, start, step=0.1, steps=30, t0=3.0, burn_in=5, **more)
    for what in (second, tmp_path / "run"):
        (after,), (whole,) = (list(frames(export_source(of).only([name], {})).values()) for of in (what, one))
        count = len(after.steps)
        assert after.steps.tolist() == whole.steps[-count:].tolist() == ([25, 30, 35] if name == "kept" else [35])
        np.testing.assert_allclose(after.times, whole.times[-count:], atol=1e-12)


def test_tables_hold_the_numbers(run, tmp_path):
    """CSV and Parquet read back to the same bits, with axes as columns."""
    result, _ = run
    for name, read in (("csv", pandas.read_csv), ("parquet", pandas.read_parquet)):
        bm.export(result, tmp_path / name, to=name)
        energy = read(tmp_path / name / f"energy.{name}")
        assert energy["time"].tolist() == result.times.tolist()
        assert np.array_equal(energy["mean"], result.energy.mean)
        assert np.array_equal(energy["stderr"], result.energy.stderr)
        bodies = read(tmp_path / name / f"kept.{name}")
        assert len(bodies) == 2 * 3 * 3  # trajectories, times, bodies
        row = bodies[(bodies.trajectory == 2) & (bodies.body == 1)].iloc[-1]
        assert np.allclose(row[["x", "y", "z"]].to_numpy(float), result.kept.q0.values[1, -1, 1], atol=1e-12)
        assert (row.species, row.mass, row.side_x) == ("B", 2.0, 4.0)
        spread = read(tmp_path / name / f"spread.{name}")
        assert len(spread) == 4
    one = bm.export(result, tmp_path / "energy.csv", only=["energy"])
    assert one == [tmp_path / "energy.csv"]
    with pytest.raises(BismutError, match=r"is one file, but there are .* tables: energy"):
        bm.export(result, tmp_path / "all.csv")
    assert not (tmp_path / "all.csv").exists()


def test_netcdf_is_the_labelled_tree(run, tmp_path):
    result, folder = run
    (file,) = bm.export(folder, tmp_path / "a.nc")
    with xarray.open_datatree(file, engine="h5netcdf") as tree:
        assert tree["energy"]["mean"].equals(result.energy.mean.rename("mean"))
        bodies = tree["kept-bodies"]
        assert bodies["orientation"].dims == ("trajectory", "time", "body", "quaternion")
        assert bodies["quaternion"].values.tolist() == list("wxyz")
        assert bodies["box"].values.tolist() == [4.0, 5.0, np.inf]
        assert np.array_equal(tree["kept"]["q0"], result.kept.q0)


def test_frames_end_where_a_trajectory_failed(tmp_path):
    """States that are not numbers are no frames."""
    scheme = bm.Verlet(SYSTEMS["bodies"]())
    made = trajectory(scheme)
    broken = made._replace(states=jax.tree.map(lambda leaf: leaf.at[2].set(np.nan), made.states))
    (file,) = bm.export(broken, tmp_path / "a.extxyz", system=scheme)
    assert file.read_text().count("Properties=") == 2


def test_a_sweep_is_shared_value_by_value(tmp_path):
    system = bm.mechanical(bm.Euclidean(2), potential=lambda q, parameters: 0.5 * parameters["k"] * q @ q, parameters={"k": 1.0})
    scheme = bm.Verlet(system)
    start = scheme.start(np.array([1.0, 0.0]), velocity=np.array([0.0, 1.0]))
    observe = {"kept": bm.paths([0]), "energy": bm.energy}
    result = bm.simulate(scheme, start, step=0.1, steps=4, trajectories=2, seed=1, every=2, observe=observe, sweep={"k": [1.0, 2.0]}, progress=False)
    with pytest.raises(BismutError, match="sweep over k: choose one value"):
        bm.export(result, tmp_path / "a.gsd")
    with pytest.raises(BismutError, match=r"k = 3 was not run. Values: 1, 2"):
        bm.export(result, tmp_path / "a.gsd", at={"k": 3})
    (file,) = bm.export(result, tmp_path / "a.extxyz", at={"k": 2})
    assert np.allclose(bm.import_state(scheme, file).q, result.kept.q.sel(k=2.0).values[0, -1], atol=1e-14)
    bm.export(result, tmp_path / "tables", to="csv")
    assert pandas.read_csv(tmp_path / "tables" / "energy.csv")["k"].tolist() == [1.0] * 3 + [2.0] * 3


def test_chains_and_draws(run):
    """Trajectories are chains and looks draws, with the values that were kept; ArviZ takes them."""
    result, folder = run
    tree = bm.to_arviz(folder, only=["each"])
    draws = tree["posterior"].to_dataset()
    assert draws["each"].dims == ("chain", "draw")
    assert np.array_equal(draws["each"], result.each.value)
    assert draws["time"].values.tolist() == result.times.tolist()
    assert draws["chain"].values.tolist() == [0, 1, 2]
    states = bm.to_arviz(result, only=["kept"])["posterior"].to_dataset()
    assert states["kept_q1"].dims == ("chain", "draw", "q1_0", "q1_1", "q1_2")
    with pytest.raises(BismutError, match="have different times or trajectories"):
        bm.to_arviz(result)
    with pytest.raises(BismutError, match="No observer of this run kept values"):
        bm.to_arviz(result, only=["energy"])


def test_arviz_diagnoses_independent_draws():
    """Draws that are independent have R̂ near 1 and as many effective as there are; shifted chains have not. Fixed seed; R̂ of 4 × 500 normal draws
    is above 1.02 less than once in 10⁴ seeds."""
    generator = np.random.default_rng(5)
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1)))

    def chains(shift: float):
        made = [trajectory(scheme, times=np.arange(500.0), number=n, states=_normal(generator, shift * n)) for n in range(4)]
        return xarray.concat([bm.to_arviz(one)["posterior"].to_dataset() for one in made], "chain")

    good, bad = chains(0.0), chains(1.0)
    assert float(arviz.rhat(good)["paths_q0"].max()) < 1.02
    assert float(arviz.ess(good)["paths_q0"].min()) > 1000
    assert float(arviz.rhat(bad)["paths_q0"].max()) > 1.2


def _normal(generator, shift: float) -> bm.State:
    return bm.State(shift + generator.normal(size=(500, 1)), generator.normal(size=(500, 1)))


def test_refusals(run, tmp_path, monkeypatch):
    result, _ = run
    file = tmp_path / "a.csv"
    file.write_text("mine")
    with pytest.raises(BismutError, match="exists already"):
        bm.export(result, file, only=["energy"])
    assert file.read_text() == "mine"
    bm.export(result, file, only=["energy"], overwrite=True)
    assert file.read_text().startswith("time,mean")
    with pytest.raises(BismutError, match=r"There is no format 'gds'. Did you mean 'gsd'\?"):
        bm.export(result, tmp_path / "b", to="gds")
    with pytest.raises(BismutError, match=r"not that of a known format. Known: .csv"):
        bm.export(result, tmp_path / "b.pdb")
    with pytest.raises(BismutError, match=r"no 'enrgy'. Did you mean 'energy'\?"):
        bm.export(result, tmp_path / "b.csv", only=["enrgy"])
    with pytest.raises(BismutError, match=r"Trajectory 1 was not kept. Kept: 0, 2"):
        bm.export(result, tmp_path / "b.gsd", trajectory=1)
    with pytest.raises(BismutError, match="Choose netcdf, csv or parquet"):
        bm.export(trajectory(bm.Verlet(SYSTEMS["points"]())), tmp_path / "b.gsd")
    with pytest.raises(BismutError, match="species must name each body, got 1 for 3"):
        bm.export(result, tmp_path / "b.gsd", species=["O"])
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "thesis.tex").write_text("mine")
    with pytest.raises(BismutError, match=r"also holds thesis.tex"):
        bm.export(result, tmp_path / "tables", to="csv", overwrite=True)
    assert (tmp_path / "tables" / "thesis.tex").read_text() == "mine"
    for name, package in (("gsd", "gsd.hoomd"), ("netcdf", "h5netcdf"), ("parquet", "pyarrow")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(BismutError, match=r"pip install 'bismut\[share\]'"):
            bm.export(result, tmp_path / f"c-{name}", to=name)
    assert sorted(formats()) == ["csv", "extxyz", "gsd", "lammpstrj", "netcdf", "parquet"]
