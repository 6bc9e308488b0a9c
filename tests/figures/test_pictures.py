"""Pictures of runs say no more than the run did: what is read off the axes and the words of figures drawn from small labelled trees."""

import numpy as np
import pytest
import xarray
from PIL import Image

from bismut.figures.runs import pictures, save_picture
from bismut.figures.runs.pictures import run_caption
from bismut.figures.runs.portraits import cut_at_wraps
from bismut.figures.style import styled

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
    globe = 10  # circles of latitude and longitude, ends of axes
    assert (len(figure.axes[0].lines) > globe) == joined
    assert ("too far apart to be joined" in words) != joined


def test_titles_say_the_numbers_that_ran():
    assert run_caption(HOW) == "Verlet on Circle(), 4000 trajectories, 20 steps of 0.1, seed 3"
    ended = HOW | {"trajectories_run": 512, "steps_run": 7}
    assert run_caption(ended) == "Verlet on Circle(), 512 trajectories of 4000 asked for, 7 of 20 steps of 0.1, seed 3"
    assert "512–4000 trajectories of 4000 asked for" in run_caption(HOW | {"trajectories_run": [4000, 512]})


@pytest.mark.filterwarnings("error")
def test_a_run_in_which_everybody_failed_is_drawn_all_the_same(tmp_path):
    nothing = {"asked": 30, "counted": 0, "failed": 30}
    states = {"q": (("trajectory", "part"), np.full((30, 1), np.nan)), "p": (("trajectory", "part"), np.full((30, 1), np.nan))}
    kept = {kind: (("trajectory", "time"), np.full((30, 21), np.nan)) for kind in ("q", "p")}
    tree = {
        "energy": series(np.nan, np.inf, -np.inf, **nothing),
        "final": xarray.Dataset(states, attrs=nothing),
        "paths": xarray.Dataset(kept, {"time": TIME}, attrs=nothing),
        "angle": xarray.Dataset({"value": kept["q"]}, {"trajectory": np.arange(30), "time": TIME}, attrs=nothing),
    }
    for name, picture in pictures(xarray.DataTree.from_dict(tree), HOW).items():
        assert save_picture(picture, name, tmp_path, "png").exists()


def lagged(name: str) -> xarray.Dataset:
    kind, error = ("correlation", "correlation_stderr") if name == "memory" else ("mean", "stderr")
    return xarray.Dataset({kind: ("lag", np.arange(1.0, 4)), error: ("lag", np.full(3, 0.1))}, {"lag": np.arange(3.0)})


@pytest.mark.parametrize(("name", "least"), [("memory", 0.8), ("spread", 1.8)])
def test_functions_of_lag_have_their_errors(name, least):
    """A band of two standard errors to both sides: the polygon reaches from y − 0.2 to y + 0.2, on logarithmic axes from the first lag after 0 on."""
    figure, _ = drawn({name: lagged(name)}, name)
    (band,) = figure.axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((least, 3.2))


def test_quantiles_and_histograms_have_their_errors():
    bins = {"density": ("bin", np.ones(4)), "stderr": ("bin", np.full(4, 0.1)), "counts": ("bin", np.ones(4)), "below": 0, "above": 0}
    tree = {
        "level": xarray.Dataset({"quantile": ("level", np.arange(3.0)), "stderr": ("level", np.full(3, 0.1))}, {"level": [0.2, 0.5, 0.8]}),
        "spread": xarray.Dataset(bins | {"edges": ("edge", np.arange(5.0))}),
    }
    across = drawn(tree, "level")[0].axes[0].collections[0].get_segments()
    upwards = drawn(tree, "spread")[0].axes[0].collections[0].get_segments()
    assert np.ptp(across[1], axis=0) == pytest.approx([0.4, 0.0])
    assert np.ptp(upwards[1], axis=0) == pytest.approx([0.0, 0.4])


def test_those_left_over_time_are_drawn_with_those_never_seen_to_pass():
    rows = {kind: ("time", np.linspace(1, 0.2, 21)) for kind in ("survival", "stderr")}
    _, words = drawn({"escape": xarray.Dataset(rows | {"censored": 8, "count": 40}, {"time": TIME})}, "escape")
    assert "8 of 40 never seen to pass" in words


@pytest.mark.parametrize(("trajectories", "lines"), [(3, 3), (5000, 1)])
def test_kept_values_are_lines_of_a_few_and_quantiles_of_many(trajectories, lines):
    kept = np.random.default_rng(0).normal(size=(trajectories, 21))
    kept[0, 5:] = np.nan
    data = xarray.Dataset({"value": (("trajectory", "time"), kept)}, {"trajectory": np.arange(trajectories), "time": TIME})
    figure, words = drawn({"angle": data}, "angle")
    assert len(figure.axes[0].lines) == lines
    assert f"of {trajectories:,}".replace(",", " ") in words
    if lines == 1:  # four standard errors of the median of 5000 normal numbers, at 21 times
        assert np.abs(figure.axes[0].lines[0].get_ydata()).max() < 4 * np.sqrt(np.pi / 2 / 5000)


def test_many_components_are_drawn_as_their_spread():
    wide = {kind: (("time", "part"), np.tile(np.arange(100.0), (21, 1))) for kind in ("mean", "stderr", "min", "max")}
    figure, _ = drawn({"p": xarray.Dataset(wide, {"time": TIME})}, "p")
    (median,) = figure.axes[0].lines
    assert np.asarray(median.get_ydata()) == pytest.approx(49.5)
    assert "all 100 components" in figure.axes[0].get_legend().get_texts()[0].get_text()


def test_a_million_last_states_are_a_density_and_all_are_counted(tmp_path):
    rng = np.random.default_rng(1)
    states = xarray.Dataset({kind: ("trajectory", rng.normal(size=1_000_000)) for kind in ("q", "p")})
    figure, words = drawn({"final": states}, "final-portrait")
    (mesh,) = figure.axes[0].collections
    assert np.nansum(mesh.get_array()) == 1_000_000
    assert "1 000 000" in words
    assert "densely" in words


def test_one_state_far_away_does_not_hide_the_others():
    q = np.append(np.random.default_rng(2).normal(size=20_000), 1e9)
    figure, _ = drawn({"final": xarray.Dataset(dict.fromkeys(("q", "p"), ("trajectory", q)))}, "final-portrait")
    assert figure.axes[0].get_xlim()[1] < 10


def test_a_large_value_of_one_trajectory_does_not_flatten_the_mean():
    data = series(np.sin(TIME), -1e6, 1e6).assign(std=("time", np.full(21, 0.5)))
    figure, _ = drawn({"energy": data}, "energy")
    assert np.ptp(figure.axes[0].get_ylim()) < 10
    assert "all values from -1e+06 to 1e+06" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_a_sweep_has_a_curve_for_each_value_and_a_key():
    """Two parameters: a panel for each value of the second, a curve for each of the first, however many."""
    values = np.linspace(1, 4, 12)
    rows = {kind: (("mass", "noise", "time"), np.ones((12, 2, 21))) for kind in ("mean", "stderr")}
    data = xarray.Dataset(rows, {"mass": values, "noise": [0.1, 0.2], "time": TIME})
    figure, _ = drawn({"energy": data}, "energy", HOW | {"sweep": {"mass": values, "noise": [0.1, 0.2]}})
    first, second, bar = figure.axes
    assert [len(axis.lines) for axis in (first, second)] == [12, 12]
    assert (first.get_title(), bar.get_ylabel()) == ("noise = 0.1", "mass")


def test_every_picture_says_what_it_is_and_names_its_axes():
    bins = {"density": ("bin", np.ones(4)), "counts": ("bin", np.ones(4)), "below": 0, "above": 0, "edges": ("edge", np.arange(5.0))}
    means = {f"mean{i}": series(1.0, 0.0, 2.0) for i in range(5)}
    tree = {"spread": xarray.Dataset(bins), "memory": lagged("memory"), **means}
    for name in pictures(xarray.DataTree.from_dict(tree), HOW):
        figure, words = drawn(tree, name)
        assert figure.get_suptitle(), name
        assert "Verlet on Circle(), 4000 trajectories" in words
        if name != "overview":
            assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes), name
    assert len([axis for axis in drawn(tree, "overview")[0].axes if axis.axison]) == 5


def test_a_dark_picture_is_dark_and_its_words_are_light(tmp_path):
    picture = pictures(xarray.DataTree.from_dict({"energy": series(np.sin(TIME), -1.0, 1.0)}), HOW)["energy"]
    for dark, (low, high) in ((False, (0, 255)), (True, (20, 243))):
        file = save_picture(picture, f"energy-{dark}", tmp_path, "png", dark)
        seen = np.asarray(Image.open(file).convert("L"))
        assert seen[2, 2] == (255 if not dark else 23)
        assert seen.min() <= low + 20
        assert seen.max() >= high - 2


def test_orientational_order_is_drawn_with_its_errors_and_its_tensor():
    p, Q = np.array([0.1, -0.2, 0.5]), np.diag([-0.2, -0.1, 0.3])
    data = {
        "polarisation": ("a", p),
        "polarisation_stderr": ("a", 0.01 * np.ones(3)),
        "nematic": (("a", "b"), Q),
        "nematic_stderr": (("a", "b"), 0 * Q),
    }
    data |= {"P1": 0.55, "P1_stderr": 0.02, "P2": 0.3, "P2_stderr": 0.03}
    figure, words = drawn({"order": xarray.Dataset(data)}, "order")
    assert "orientational order" in words
    numbers, tensor = figure.axes[:2]
    np.testing.assert_allclose(numbers.lines[0].get_ydata(), [*p, 0.55, 0.3])
    (bars,) = numbers.collections
    np.testing.assert_allclose([np.ptp(segment[:, 1]) for segment in bars.get_segments()], 4 * np.array([0.01, 0.01, 0.01, 0.02, 0.03]))
    np.testing.assert_allclose(tensor.images[0].get_array(), Q)
