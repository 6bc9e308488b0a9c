"""Text on a picture: its title, how the run was made, how many trajectories failed, and the names of numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bismut.figures.style import colour


class Observed(NamedTuple):
    """What a picture shows: the data of one observer.

    caption  how the run was made
    labels   what the run says of the observer: `of`, the quantities; `columns`, names of numbers; `where`, of a section
    axes     swept parameters among the dimensions of the data
    """

    name: str
    data: Any
    caption: str
    labels: Mapping[str, Any]
    axes: Sequence[str] = ()

    @property
    def title(self) -> str:
        """What is observed: the quantity, if the run says so."""
        return ", ".join(self.labels.get("of", ())) or self.name

    @property
    def averaged(self) -> str:
        """What a mean is over."""
        counted = np.asarray(self.data.attrs.get("counted", 0))
        if counted.ndim or counted < 1:
            return "mean over trajectories"
        return f"mean over {numbered(int(counted))} trajectories" if counted > 1 else "one trajectory"

    def columns(self, kind: str) -> tuple[np.ndarray, list[str]]:
        """One of its arrays over the first axis as columns, and a label for each, as the run named them."""
        values = columns(self.data[kind])
        names = list(self.labels.get("columns", ()))
        if len(names) != values.shape[1]:
            names = [self.name + "".join(f"[{i}]" for i in index) for index in np.ndindex(*self.data[kind].shape[1:])]
        return values, names

    def component_names(self, count: int) -> list[str]:
        return list(self.labels.get("columns") or [f"{self.name}[{i}]" for i in range(count)])


def columns(array: Any) -> np.ndarray:
    """An array over its first axis as columns."""
    values = np.asarray(array)
    return values.reshape(len(values), -1)


def titled(figure: Any, title: str, caption: str) -> None:
    """A title that says what is shown, and beneath the picture how the run was made."""
    entitle(figure, title)
    wide = int(14 * figure.get_size_inches()[0])
    figure.supxlabel(textwrap.fill(caption, wide), x=0.01, ha="left", fontsize=8.5, color=colour("soft"))


def entitle(figure: Any, title: str) -> None:
    """The title, in lines that fit the width; instead of one that is there."""
    wide = int(9.5 * figure.get_size_inches()[0])
    figure.suptitle(textwrap.fill(title, wide), x=0.01, ha="left", fontsize=13, weight="bold")


def survivors(data: Any) -> str:
    """A mark for what is over fewer trajectories than were run: how many, of how many. Empty where all are counted."""
    asked, counted, failed = (np.asarray(data.attrs.get(name, 0)) for name in ("asked", "counted", "failed"))
    if not failed.any():
        return ""
    if failed.ndim == 0:
        return f"⚠ over {int(counted)} of {int(asked)} trajectories: {int(failed)} failed"
    return f"⚠ {int(failed.sum())} of {int(asked.sum())} trajectories failed; over {int(counted.min())} at worst"


def mark_survivors(figure: Any, data: Any) -> None:
    """Write the mark under the picture, in a colour that no curve has."""
    if mark := survivors(data):
        figure.text(0.01, -0.005, mark, ha="left", va="top", fontsize=11, weight="bold", color=colour("alarm"))


def numbered(count: int) -> str:
    """A whole number as one reads it: 1 000 000, with thin spaces."""
    return f"{int(count):,}".replace(",", "\u2009")
