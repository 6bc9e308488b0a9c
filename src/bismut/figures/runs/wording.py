"""What is written on a picture: its title, how the run was made, who is missing, and the names of numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.figures.style import colour


def titled(figure: Any, title: str, words: str) -> None:
    """A title that says what is seen, and beneath the picture how the run was made."""
    entitle(figure, title)
    wide = int(14 * figure.get_size_inches()[0])
    figure.supxlabel(textwrap.fill(words, wide), x=0.01, ha="left", fontsize=8.5, color=colour("soft"))


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
    words = survivors(data)
    if words:
        figure.text(0.01, -0.005, words, ha="left", va="top", fontsize=11, weight="bold", color=colour("alarm"))


def title_of(name: str, called: Mapping[str, Any]) -> str:
    """What is observed under a name: the quantity, if the run says so."""
    return ", ".join(called.get("of", ())) or name


def over(data: Any) -> str:
    """Over whom a mean is."""
    counted = np.asarray(data.attrs.get("counted", 0))
    if counted.ndim or counted < 1:
        return "mean over trajectories"
    return f"mean over {numbered(int(counted))} trajectories" if counted > 1 else "one trajectory"


def columns(array: Any, name: str = "", called: Mapping[str, Any] | None = None) -> tuple[np.ndarray, list[str]]:
    """An array over its first axis as columns, and a label for each, as the run called them."""
    values = np.asarray(array)
    shape = values.shape[1:]
    labels = (called or {}).get("columns", ())
    if len(labels) != np.prod(shape, dtype=int):
        labels = [name + "".join(f"[{i}]" for i in index) for index in np.ndindex(*shape)]
    return values.reshape(len(values), -1), list(labels)


def numbered(count: int) -> str:
    """A whole number as one reads it: 1 000 000, with thin spaces."""
    return f"{int(count):,}".replace(",", "\u2009")
