"""The figure of rigid water: its fit is A + B h², its errors know of correlation, its units are those of the library."""

import numpy as np
import pytest

import bismut as bm
from bismut.figures import rigid_water
from bismut.figures.rigid_water import WaterRun, WaterStudy

LEVELS, SLOPES = np.array([298.0, 297.0, 296.0, 295.0, -46.5, 20.0]), np.array([-0.1, -1.1, 0.7, 0.3, 0.02, -3.0])


def made_up(steps=(0.5, 1.0, 2.0, 4.0, 6.0), rounds=20) -> WaterStudy:
    """Rounds that scatter about the law so that their mean, without the first fifth, lies on it."""
    noise = np.random.default_rng(3).normal(size=(rounds, 6))
    noise[rounds // 5 :] -= noise[rounds // 5 :].mean(0)
    runs = [WaterRun(name, h, list(LEVELS + SLOPES * h**2 + noise)) for name in ("BAOAB", "GLA") for h in steps]
    return WaterStudy(216, 3, 0.0, 4, 400, 5.0, runs)


def test_the_fit_finds_the_law():
    study = made_up()
    for quantity in range(6):
        (level, slope), errors = study.fit("GLA", quantity)
        assert np.isclose(level, LEVELS[quantity], rtol=1e-10)
        assert np.isclose(slope, SLOPES[quantity], rtol=1e-8)
        assert (errors > 0).all()


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
