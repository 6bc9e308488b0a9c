"""Which pictures a run can give, read off the names of its arrays: every observer leaves its own kind.

mean over time → a curve with its error     counts → a histogram        correlation or mean over lag, survival → a curve
value at crossings → a section              quantile → a staircase      q and p → a phase portrait; rotations → points on the sphere
value over time → lines, or quantiles       and all means over time once more, small, on one page

A sweep gives a curve for each value and the last mean against it; of everything else one picture for each value, name-1, name-2, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bismut.errors import DomainError
from bismut.figures.figure import FORMATS
from bismut.figures.runs.curves import curve_of, functions, levels, series
from bismut.figures.runs.distributions import compared, counts, grid, spread
from bismut.figures.runs.overview import overview
from bismut.figures.runs.portraits import portrait, section
from bismut.figures.runs.spheres import directions, sphere
from bismut.figures.runs.swept import against, family, values_of
from bismut.figures.runs.values import traces
from bismut.figures.runs.wording import entitle, mark_survivors
from bismut.figures.style import styled

_SHOWN = 6  # values of a sweep of which pictures are drawn unasked, where each has its own


@dataclass(frozen=True)
class Picture:
    """A title, and a function that draws on a figure of matplotlib."""

    title: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (8.0, 5.0)
    usual: bool = True  # whether it is drawn without being named


def pictures(tree: Any, how: dict[str, Any], labels: Mapping[str, Any] | None = None) -> dict[str, Picture]:
    """Names and pictures. `how` is the provenance of the run, for the words over them; `labels` says what the numbers of each observer are."""
    words = words_of(how)
    found: dict[str, Picture] = {}
    means: dict[str, Any] = {}
    for name, group in tree.children.items():
        data = group.to_dataset()
        called = (labels or {}).get(name, {})
        axes = [axis for axis in how.get("sweep") or () if axis in data.dims]
        found |= _of_sweep(name, data, words, called, axes) if axes else _of(name, data, words, called)
        if not axes and "mean" in data and data["mean"].dims[:1] == ("time",):
            means[name] = (data, called)
    if len(means) > 3 and "overview" not in found:
        rows = -(-len(means) // 4)
        found["overview"] = Picture("all means over time on one page", partial(overview, means=means, words=words), (13.0, 1.2 + 2.2 * rows))
    return found


def words_of(how: Mapping[str, Any]) -> str:
    """The run in a line, with the numbers that ran; beside them those that were asked for, where they differ."""
    # Of a sweep, a list over its variants.
    done = np.ravel(how["trajectories"] if how.get("trajectories_run") is None else how["trajectories_run"])
    each = "–".join(str(number) for number in sorted({int(done.min()), int(done.max())}))
    asked = "" if (done == how["trajectories"]).all() else f" of {how['trajectories']} asked for"
    made = how["steps"] if how.get("steps_run") is None else how["steps_run"]
    steps = f"{made} steps of {how['step']:g}" if made == how["steps"] else f"{made} of {how['steps']} steps of {how['step']:g}"
    return f"{how['scheme']} on {how['space']}, {each} trajectories{asked}, {steps}, seed {how['seed']}"


def _of_sweep(name: str, data: Any, words: str, called: Mapping[str, Any], axes: list[str]) -> dict[str, Picture]:
    draw = lambda kind: _marked(partial(kind, name=name, data=data, words=words, called=called, axes=axes), data)
    kinds = set(map(str, data))
    found: dict[str, Picture] = {}
    if curve_of(name, data.isel(dict.fromkeys(axes, 0)), called) is not None:
        panels = min(int(np.prod([data.sizes[axis] for axis in axes[1:]])), 6)
        found[name] = Picture(f"{name}, a curve for each value", draw(family), (min(6.0 + 2.4 * panels, 16.0), 5.0))
    elif "counts" in kinds and "bin" in data.dims:
        found[name] = Picture(f"{name}: histogram, for each value", draw(compared), (9.5, 5.0))
    if {"mean", "stderr"} <= kinds and not {"lag", "x", "bin"} & set(map(str, data.dims)):
        found[f"{name}-sweep"] = Picture(f"{name} against {axes[0]}", draw(against))
    if found:
        return found
    for number, (label, one) in enumerate(values_of(data, axes), 1):
        for kind, picture in _of(name, one, words, called).items():
            found[f"{kind}-{number}"] = Picture(f"{picture.title}, {label}", partial(_at_value, picture.draw, label), picture.size, number <= _SHOWN)
    return found


def _at_value(draw: Callable[[Any], None], label: str, figure: Any) -> None:
    """A picture of one value of a sweep, which its title names."""
    draw(figure)
    entitle(figure, f"{figure.get_suptitle()}; {label}")


def _marked(draw: Callable[..., None], data: Any) -> Callable[[Any], None]:
    """A picture that says so when not all trajectories are in it."""
    return partial(_drawn, draw, data)


def _drawn(draw: Callable[..., None], data: Any, figure: Any) -> None:
    draw(figure)
    mark_survivors(figure, data)


def save_picture(picture: Picture, name: str, folder: Path, form: str, dark: bool = False) -> Path:
    if form not in FORMATS:
        raise DomainError(f"A picture is written as one of {', '.join(FORMATS)}, got {form!r}.")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.{form}"
    with styled(dark) as plt:
        figure = plt.figure(figsize=picture.size)
        picture.draw(figure)
        figure.savefig(file, dpi=160, bbox_inches="tight")  # the mark of survivors stands below the axes
        plt.close(figure)
    return file


def _of(name: str, data: Any, words: str, called: Mapping[str, Any]) -> dict[str, Picture]:
    kinds, axes = set(map(str, data)), set(map(str, data.sizes))
    draw = lambda kind: _marked(partial(kind, name=name, data=data, words=words, called=called), data)
    if name == "final" or {"q", "q0"} & kinds:
        return _of_states(name, data, words)
    if "mean" in kinds and data["mean"].dims[:1] == ("time",):
        found = {name: Picture(f"{name} over time, with two standard errors", draw(series))}
        if data["mean"].dims[1:] and data["mean"].shape[-1] == 3 and name.startswith("orientation"):
            found[f"{name}-sphere"] = Picture(f"{name}: the mean direction on the sphere", draw(directions), (7.0, 6.5))
        return found
    if "counts" in kinds and "bin" in axes:
        return {name: Picture(f"{name}: histogram", draw(counts))}
    if "counts" in kinds:
        return {name: Picture(f"{name}: histogram of two quantities", draw(grid), (7.0, 5.8))}
    if "crossing" in axes:
        return {name: Picture(f"{name}: section", draw(section), (7.0, 6.0))}
    if "survival" in kinds:
        return {name: Picture(f"{name}: those that have not passed, over time", draw(functions))}
    if "lag" in axes:
        return {name: Picture(f"{name} over lag", draw(functions))}
    if "value" in kinds and data["value"].dims[:2] == ("trajectory", "time"):
        return {name: Picture(f"{name} of each trajectory over time", draw(traces), (9.0, 5.0))}
    if "quantile" in kinds:
        return {name: Picture(f"{name}: quantiles", draw(levels))}
    return {}  # an average or extremes: numbers, which `info` prints


def _rotations(array: Any) -> bool:
    """Whether an array holds rotation matrices; three positions in space have the same shape."""
    values = np.asarray(array)
    if values.shape[-2:] != (3, 3):
        return False
    known = values.reshape(-1, 3, 3)
    known = known[np.isfinite(known).all((1, 2))]
    return bool(len(known)) and np.allclose(np.swapaxes(known, 1, 2) @ known, np.eye(3), atol=1e-6)


def _of_states(name: str, data: Any, words: str) -> dict[str, Picture]:
    """Portraits of kept trajectories (with time) or of the last states (without)."""
    q = {str(kind): data[kind] for kind in data if str(kind).startswith("q")}
    p = {str(kind): data[kind] for kind in data if str(kind).startswith("p")}
    if not q or not p:
        return {}
    found = {}
    draw = lambda kind, **chosen: _marked(partial(kind, name=name, words=words, **chosen), data)
    turns = {kind: array for kind, array in q.items() if _rotations(array)}
    pairs = [(one, f"p{one[1:]}") for one in q]  # q0 and p0 belong together, wherever they stand
    flat = [(q[one], p[other]) for one, other in pairs if one not in turns and other in p and q[one].shape == p[other].shape]
    if flat:
        what = "last states" if name == "final" else "kept trajectories"
        found[f"{name}-portrait"] = Picture(f"phase portrait of the {what}", draw(portrait, pairs=flat), (7.5, 6.0))
    if turns:
        found[f"{name}-sphere"] = Picture("where the third body axis points", draw(sphere, turns=next(iter(turns.values()))), (7.0, 6.5))
    if name == "final":
        found[f"{name}-momenta"] = Picture("histogram of the last momenta", draw(spread, momenta=list(p.values())))
    return found
