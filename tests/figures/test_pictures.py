"""Pictures of runs say no more than the run did: what is read off the axes and the words of figures drawn from small labelled trees."""

import numpy as np
import pytest
import xarray

from bismut.figures.runs import pictures
from bismut.figures.runs.pictures import words_of
from bismut.figures.runs.portraits import cut_at_wraps
from bismut.figures.style import styled

pytest.importorskip("matplotlib")

HOW = {"scheme": "Verlet", "space": "Circle()", "trajectories": 4000, "step": 0.1, "steps": 20, "seed": 3, "sweep": None}
TIME = np.linspace(0.0, 2.0, 21)


def series(mean, low, high, **population) -> xarray.Dataset:
    rows = {"mean": mean, "stderr": np.zeros(21), "min": low, "max": high}
    return xarray.Dataset({kind: ("time", np.broadcast_to(value, 21)) for kind, value in rows.items()}, {"time": TIME}, attrs=population)


def drawn(tree: dict[str, xarray.Dataset], name: str, how=HOW):
    """The figure, and every word in it."""
    one = pictures(xarray.DataTree.from_dict(tree), how)[name]
    with styled() as plt:
        figure = plt.figure(figsize=one.size)
        one.draw(figure)
        titles = [axis.get_title(loc=side) for axis in figure.axes for side in ("left", "center")]
        texts = [text.get_text() for holder in (figure, *figure.axes) for text in holder.texts]
        plt.close(figure)
    return figure, " ".join(" ".join([*titles, *texts, figure.get_suptitle()]).split())


def test_a_mean_over_survivors_carries_a_mark_with_its_count():
    _, words = drawn({"energy": series(1.0, 0.0, 2.0, asked=4000, counted=3967, failed=33)}, "energy")
    assert "over 3967 of 4000 trajectories: 33 failed" in words


def test_a_mean_over_all_carries_none():
    _, words = drawn({"energy": series(1.0, 0.0, 2.0, asked=4000, counted=4000, failed=0)}, "energy")
    assert "failed" not in words


def test_every_kind_of_picture_carries_the_mark():
    """Histogram, quantiles, functions of lag, sections, portraits and sweeps."""
    population = {"asked": 10, "counted": 8, "failed": 2}
    bins = {"density": ("bin", np.ones(4)), "counts": ("bin", np.ones(4)), "below": 0, "above": 0, "edges": ("edge", np.arange(5.0))}
    states = {kind: (("trajectory", "time"), np.ones((2, 21))) for kind in ("q", "p")}
    tree = {
        "spread": xarray.Dataset(bins, attrs=population),
        "level": xarray.Dataset({"quantile": ("level", np.arange(3.0))}, {"level": [0.2, 0.5, 0.8]}, attrs=population),
        "memory": xarray.Dataset({"correlation": ("lag", np.arange(3.0))}, {"lag": np.arange(3.0)}, attrs=population),
        "crossings": xarray.Dataset(
            {"value": (("trajectory", "crossing", "part"), np.ones((2, 3, 2))), "time": (("trajectory", "crossing"), np.ones((2, 3)))},
            attrs=population,
        ),
        "paths": xarray.Dataset(states, {"time": TIME}, attrs=population),
    }
    for name in ("spread", "level", "memory", "crossings", "paths-portrait"):
        assert "over 8 of 10 trajectories: 2 failed" in drawn(tree, name)[1], name


def test_a_sweep_carries_the_mark_of_all_its_variants():
    rows = {kind: (("mass", "time"), np.ones((2, 21))) for kind in ("mean", "stderr")}
    data = xarray.Dataset(rows, {"mass": [1.0, 2.0], "time": TIME}, attrs={"asked": [10, 10], "counted": [10, 7], "failed": [0, 3]})
    for name in ("energy", "energy-sweep"):
        _, words = drawn({"energy": data}, name, HOW | {"sweep": {"mass": [1.0, 2.0]}})
        assert "3 of 20 trajectories failed; over 7 at worst" in words


def test_constant_means_that_every_trajectory_is():
    """A mean that stands still while trajectories part is not called constant."""
    _, words = drawn({"J": series(3.0, 2.0, 4.0)}, "J")
    assert "constant" not in words
    _, words = drawn({"J": series(3.0, 3.0 - 4e-14, 3.0 + 4e-14)}, "J")
    assert "every trajectory constant to 8.0e-14" in words


def test_a_path_on_a_circle_is_cut_where_it_wraps():
    angle = np.array([2.9, 3.1, -3.1, -2.9, 3.1])
    q, p = cut_at_wraps(angle, np.arange(5.0))
    np.testing.assert_array_equal(q, [2.9, 3.1, np.nan, -3.1, -2.9, np.nan, 3.1])
    np.testing.assert_array_equal(p, [0.0, 1.0, np.nan, 2.0, 3.0, np.nan, 4.0])
    line = np.array([-20.0, 20.0])
    assert cut_at_wraps(line, line)[0] is line


def test_no_line_of_a_portrait_crosses_the_circle():
    turning = (0.5 * np.arange(21) + np.pi) % (2 * np.pi) - np.pi
    states = xarray.Dataset({"q": (("trajectory", "time"), turning[None]), "p": (("trajectory", "time"), np.ones((1, 21)))}, {"time": TIME})
    figure, _ = drawn({"paths": states}, "paths-portrait")
    jumps = [np.abs(np.diff(line.get_xdata())) for line in figure.axes[0].lines]
    assert max(np.nanmax(jump, initial=0.0) for jump in jumps) < 0.6


def spinning(rate: float) -> xarray.Dataset:
    """A body whose third axis goes around the equator."""
    phase = rate * TIME
    e3 = np.stack([np.cos(phase), np.sin(phase), 0 * phase], -1)
    e1 = np.broadcast_to([0.0, 0.0, 1.0], e3.shape)
    R = np.stack([e1, np.cross(e3, e1), e3], -1)
    return xarray.Dataset(
        {"q": (("trajectory", "time", "row", "column"), R[None]), "p": (("trajectory", "time", "axis"), np.ones((1, 21, 3)))}, {"time": TIME}
    )


@pytest.mark.parametrize(("rate", "joined"), [(1.0, True), (12.0, False)])
def test_paths_on_the_sphere_are_points_where_looks_are_sparse(rate, joined):
    figure, words = drawn({"paths": spinning(rate)}, "paths-sphere")
    globe = 7  # circles of latitude and longitude
    assert (len(figure.axes[0].lines) > globe) == joined
    assert ("too far apart to be joined" in words) != joined


def test_titles_say_the_numbers_that_ran():
    assert words_of(HOW) == "Verlet on Circle(), 4000 trajectories, 20 steps of 0.1, seed 3"
    ended = HOW | {"trajectories_run": 512, "steps_run": 7}
    assert words_of(ended) == "Verlet on Circle(), 512 trajectories of 4000 asked for, 7 of 20 steps of 0.1, seed 3"
    assert "512–4000 trajectories of 4000 asked for" in words_of(HOW | {"trajectories_run": [4000, 512]})
