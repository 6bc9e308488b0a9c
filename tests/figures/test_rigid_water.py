"""The figure of rigid water: its fit is A + B h², its errors know of correlation, its units are those of the library."""

from pathlib import Path

import numpy as np
import pytest

import bismut as bm
from bismut.figures import rigid_water
from bismut.figures.rigid_water import RecordedMeans, WaterRun, WaterStudy, fits, fitted, recorded

DOCS = Path(__file__).parents[2] / "docs"
LEVELS, SLOPES = np.array([298.0, 297.0, 296.0, 295.0, -46.5, 20.0]), np.array([-0.1, -1.1, 0.7, 0.3, 0.02, -3.0])


def made_up(steps=(0.5, 1.0, 2.0, 4.0, 6.0), rounds=20) -> WaterStudy:
    """Rounds that scatter about the law so that their mean, without the first fifth, lies on it."""
    noise = np.random.default_rng(3).normal(size=(rounds, 6))
    noise[rounds // 5 :] -= noise[rounds // 5 :].mean(0)
    runs = [WaterRun(name, h, list(LEVELS + SLOPES * h**2 + noise)) for name in ("BAOAB", "GLA") for h in steps]
    return WaterStudy(216, 3, 0.0, 4, 1.0, 5.0, runs)


def test_the_fit_finds_the_law():
    study = made_up()
    for quantity in range(6):
        (level, slope), errors, misfit = study.fit("GLA", quantity)
        assert np.isclose(level, LEVELS[quantity], rtol=1e-10)
        assert np.isclose(slope, SLOPES[quantity], rtol=1e-8)
        assert (errors > 0).all()
        assert misfit < 1e-10


def test_the_misfit_is_one_where_errors_are_right():
    """χ² for each degree of freedom of 400 made-up studies has mean 1, with an error of √(2/(3·400)) = 0.041; of errors too small by 2 it is 4."""
    rng, steps = np.random.default_rng(8), (0.5, 1.0, 2.0, 4.0, 6.0)
    errors = np.array([0.3, 0.2, 0.1, 0.1, 0.05])

    def misfit(believed):
        means = [
            RecordedMeans("GLA", h, np.array([298 + 0.1 * h**2 + e * rng.normal()]), np.array([believed * e]))
            for h, e in zip(steps, errors, strict=True)
        ]
        return fitted(means, 0).misfit

    assert abs(np.mean([misfit(1.0) for _ in range(400)]) - 1) < 4 * 0.041
    assert abs(np.mean([misfit(0.5) for _ in range(400)]) - 4) < 16 * 0.041


def test_every_step_has_the_same_time(monkeypatch):
    """2 fs of a round are four steps of 0.5 fs and one of 2 fs."""
    counts, run = [], rigid_water.simulate
    monkeypatch.setattr(rigid_water, "simulate", lambda *given, **settings: counts.append(settings["steps"]) or run(*given, **settings))
    rigid_water.study(8, schemes=("BAOAB",), steps=(0.5, 2.0), rounds=1, span=0.002, settle=0.001, trajectories=2, note=lambda text: None)
    assert counts[1:] == [4, 1]


def test_the_page_has_the_fits_of_its_records():
    page = (DOCS / "water.md").read_text(encoding="utf-8")
    for row in fits(recorded(DOCS / "data" / "rigid-water.csv")).rows:
        assert f"| {' | '.join(row)} |" in page


def test_errors_of_correlated_rounds_are_larger():
    """Rounds that come in fours, all equal: the error is that of a quarter as many, twice as large."""
    independent = np.random.default_rng(5).normal(size=(64, 6))
    alone, fours = WaterRun("GLA", 1.0, list(independent)), WaterRun("GLA", 1.0, list(np.repeat(independent, 4, 0)))
    naive = fours.known.std(0, ddof=1) / np.sqrt(len(fours.known))
    assert np.all(fours.error > 1.8 * naive)
    assert np.all(alone.error >= alone.known.std(0, ddof=1) / np.sqrt(len(alone.known)))


def test_numbers_are_shown_in_kelvin_and_bar():
    units = pytest.importorskip("pint") and bm.units.molecular
    assert np.isclose(units.quantity(1.0, "kelvin").magnitude, rigid_water.KELVIN, rtol=1e-8)
    assert np.isclose(units.quantity(1.0, "bar").magnitude, rigid_water.BAR, rtol=1e-6)


def test_the_picture_table_and_records_are_made(tmp_path):
    files = rigid_water.FIGURE.save(made_up(), tmp_path)
    assert files.picture.stat().st_size > 10_000
    assert len(files.data.read_text().splitlines()) == 11
    assert "297.0 ± " in files.words.read_text()
