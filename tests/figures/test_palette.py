"""Colours can be told from their ground and from each other: by everybody, in the dark, and on a grey printer."""

import numpy as np
import pytest

from bismut.figures.style import palette, styled
from bismut.palette import DARK, DASHES, LIGHT, MARKS

# Machado, Oliveira & Fernandes 2009: what is left of a colour (linear RGB) where one kind of cone is missing.
SIGHT = {
    "all cones": np.eye(3),
    "no L": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no M": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no S": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colours) -> np.ndarray:
    c = np.array([[int(text[i : i + 2], 16) for i in (1, 3, 5)] for text in colours]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    t = np.clip(rgb, 0, 1) @ XYZ.T / [0.9505, 1.0, 1.089]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], -1)


def contrast(colours, ground: str) -> np.ndarray:
    """(L₁ + 0.05)/(L₂ + 0.05), the lighter over the darker."""
    light, other = linear(colours) @ XYZ[1] + 0.05, linear([ground]) @ XYZ[1] + 0.05
    return np.maximum(light, other) / np.minimum(light, other)


def apart(rows: np.ndarray) -> float:
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    return float(distance[np.triu_indices(len(rows), 1)].min())


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
class TestPalette:
    def test_everything_drawn_stands_out_from_its_ground(self, colours):
        """3 for lines and bodies, 4.5 for what is read (WCAG 2.2, 1.4.11 and 1.4.3)."""
        assert contrast(colours.series, colours.ground).min() > 3
        assert contrast([colours.ink, colours.soft, colours.alarm], colours.ground).min() > 4.5
        assert contrast(colours.scale, colours.ground).min() > 2

    @pytest.mark.parametrize("missing", SIGHT)
    def test_any_two_curves_are_told_apart_by_every_kind_of_sight(self, colours, missing):
        assert apart(lab(linear(colours.series) @ np.transpose(SIGHT[missing]))) > 23

    def test_any_two_curves_are_told_apart_in_grey(self, colours):
        lightness = lab(linear(colours.series))[:, :1]
        assert apart(lightness) > 6.5
        assert apart(lightness[:3]) > 13  # most pictures have at most three

    def test_the_scale_of_numbers_grows_lighter(self, colours):
        assert np.diff(lab(linear(colours.scale))[:, 0]).min() > 7


def test_dashes_and_marks_say_the_same_a_second_time():
    assert len(set(DASHES)) == len(set(MARKS)) == len(LIGHT.series)


def test_the_colours_in_force_are_those_of_the_ground():
    for dark, wanted in ((False, LIGHT), (True, DARK)):
        with styled(dark):
            assert palette() is wanted
    assert palette() is LIGHT
