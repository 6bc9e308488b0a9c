"""Which pictures a run can give, by the names of its arrays: every observer records a kind of its own.

mean over time → a curve with its error     counts → a histogram        correlation or mean over lag, survival → a curve
g over r, S over k → a curve; by angle → a map         orientational order → its numbers, and Q as a map
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
from bismut.figures.runs.curves import curve_of, functions, levels, overview, series
from bismut.figures.runs.distributions import compared, counts, grid, resolved, spread, traces
from bismut.figures.runs.labels import Observed, entitle, mark_survivors, titled
from bismut.figures.runs.portraits import directions, portrait, section, sphere
from bismut.figures.runs.swept import against, family, values_of
from bismut.figures.style import colour, scale, styled, write_picture

_SHOWN = 6  # values of a sweep of which pictures are drawn unasked, where each has its own


@dataclass(frozen=True)
class Picture:
    """A title, and a function that draws on a figure of matplotlib."""

    title: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (8.0, 5.0)
    usual: bool = True  # whether it is drawn without being named


def pictures(tree: Any, provenance: Mapping[str, Any], labels: Mapping[str, Any] | None = None) -> dict[str, Picture]:
    """Names and pictures. `provenance` of the run is written beneath them; `labels` says what the numbers of each observer are."""
    drawable: dict[str, Picture] = {}
    means: list[Observed] = []
    for name, group in tree.children.items():
        data = group.to_dataset()
        axes = [axis for axis in provenance.get("sweep") or () if axis in data.dims]
        shown = Observed(name, data, run_caption(provenance), (labels or {}).get(name, {}), axes)
        drawable |= _of_sweep(shown) if axes else _of(shown)
        if not axes and "mean" in data and data["mean"].dims[:1] == ("time",):
            means.append(shown)
    if len(means) > 3 and "overview" not in drawable:
        rows = -(-len(means) // 4)
        drawable["overview"] = Picture("all means over time on one page", partial(overview, means=means), (13.0, 1.2 + 2.2 * rows))
    return drawable


def run_caption(provenance: Mapping[str, Any]) -> str:
    """The run in a line, with the numbers that ran; beside them those that were asked for, where they differ."""
    asked_for, steps, run = provenance["trajectories"], provenance["steps"], provenance.get("trajectories_run")
    done = np.ravel(asked_for if run is None else run)  # of a sweep, a list over its variants
    each = "–".join(str(number) for number in sorted({int(done.min()), int(done.max())}))
    asked = "" if (done == asked_for).all() else f" of {asked_for} asked for"
    finished = steps if provenance.get("steps_run") is None else provenance["steps_run"]
    course = f"{finished}{'' if finished == steps else f' of {steps}'} steps of {provenance['step']:g}"
    return f"{provenance['scheme']} on {provenance['space']}, {each} trajectories{asked}, {course}, seed {provenance['seed']}"


def _of_sweep(shown: Observed) -> dict[str, Picture]:
    name, data, axes = shown.name, shown.data, shown.axes
    kinds = set(map(str, data))
    drawable: dict[str, Picture] = {}
    if curve_of(shown._replace(data=data.isel(dict.fromkeys(axes, 0)))) is not None:
        panels = min(int(np.prod([data.sizes[axis] for axis in axes[1:]])), 6)
        drawable[name] = Picture(f"{name}, a curve for each value", _marked(family, shown), (min(6.0 + 2.4 * panels, 16.0), 5.0))
    elif "counts" in kinds and "bin" in data.dims:
        drawable[name] = Picture(f"{name}: histogram, for each value", _marked(compared, shown), (9.5, 5.0))
    if {"mean", "stderr"} <= kinds and not {"lag", "x", "bin"} & set(map(str, data.dims)):
        drawable[f"{name}-sweep"] = Picture(f"{name} against {axes[0]}", _marked(against, shown))
    if drawable:
        return drawable
    for number, (label, one) in enumerate(values_of(data, axes), 1):
        for kind, picture in _of(shown._replace(data=one)).items():
            title, draw = f"{picture.title}, {label}", partial(_at_value, picture.draw, label)
            drawable[f"{kind}-{number}"] = Picture(title, draw, picture.size, number <= _SHOWN)
    return drawable


def _at_value(draw: Callable[[Any], None], label: str, figure: Any) -> None:
    """A picture of one value of a sweep, which its title names."""
    draw(figure)
    entitle(figure, f"{figure.get_suptitle()}; {label}")


def _marked(draw: Callable[..., None], shown: Observed, **more: Any) -> Callable[[Any], None]:
    """A picture that says so when not all trajectories are in it."""
    return partial(_draw_marked, partial(draw, shown=shown, **more), shown.data)


def _draw_marked(draw: Callable[..., None], data: Any, figure: Any) -> None:
    draw(figure)
    mark_survivors(figure, data)


def save_picture(picture: Picture, name: str, folder: Path, form: str, dark: bool = False) -> Path:
    if form not in FORMATS:
        raise DomainError(f"A picture is written as one of {', '.join(FORMATS)}, got {form!r}.")
    file = folder / f"{name}.{form}"
    with styled(dark) as plt:
        figure = plt.figure(figsize=picture.size)
        picture.draw(figure)
        write_picture(figure, file, dpi=160, bbox_inches="tight")  # the mark of survivors stands below the axes
        plt.close(figure)
    return file


def _of(shown: Observed) -> dict[str, Picture]:
    name, data = shown.name, shown.data
    kinds, axes = set(map(str, data)), set(map(str, data.sizes))
    one = lambda title, kind, *size: {name: Picture(f"{name}{title}", _marked(kind, shown), *size)}
    if name == "final" or {"q", "q0"} & kinds:
        return _of_states(shown)
    if "mean" in kinds and data["mean"].dims[:1] == ("time",):
        drawable = one(" over time, with two standard errors", series)
        if data["mean"].dims[1:] and data["mean"].shape[-1] == 3 and name.startswith("orientation"):
            drawable[f"{name}-sphere"] = Picture(f"{name}: the mean direction on the sphere", _marked(directions, shown), (7.0, 6.5))
        return drawable
    if "counts" in kinds:
        return one(": histogram", counts) if "bin" in axes else one(": histogram of two quantities", grid, (7.0, 5.8))
    if "crossing" in axes:
        return one(": section", section, (7.0, 6.0))
    if "survival" in kinds:
        return one(": those that have not passed, over time", functions)
    if "lag" in axes:
        return one(" over lag", functions)
    if {"g", "S"} & kinds and {"r", "k"} & axes and "cosine" not in axes:
        return one(" with two standard errors", functions, (8.0, 6.5 if "coordination_stderr" in kinds else 5.0))
    if "g" in kinds and "cosine" in axes:
        return one(" by distance and angle", resolved, (7.0, 5.0))
    if {"polarisation", "nematic"} <= kinds:
        return one(": orientational order", _orientational_order, (9.0, 4.2))
    if "value" in kinds and data["value"].dims[:2] == ("trajectory", "time"):
        return one(" of each trajectory over time", traces, (9.0, 5.0))
    return one(": quantiles", levels) if "quantile" in kinds else {}  # an average or extremes: numbers, which `info` prints


def _rotations(array: Any) -> bool:
    """Whether an array holds rotation matrices; three positions in space have the same shape."""
    values = np.asarray(array)
    if values.shape[-2:] != (3, 3):
        return False
    known = values.reshape(-1, 3, 3)
    known = known[np.isfinite(known).all((1, 2))]
    return bool(len(known)) and np.allclose(np.swapaxes(known, 1, 2) @ known, np.eye(3), atol=1e-6)


def _of_states(shown: Observed) -> dict[str, Picture]:
    """Portraits of recorded trajectories (with time) or of the last states (without)."""
    name, data = shown.name, shown.data
    q, p = ({str(kind): data[kind] for kind in data if str(kind).startswith(letter)} for letter in "qp")
    if not q or not p:
        return {}
    drawable = {}
    turns = {kind: array for kind, array in q.items() if _rotations(array)}
    pairs = [(one, f"p{one[1:]}") for one in q]  # q0 and p0 belong together, wherever they stand
    flat = [(q[one], p[other]) for one, other in pairs if one not in turns and other in p and q[one].shape == p[other].shape]
    if flat:
        what = "last states" if name == "final" else "kept trajectories"
        drawable[f"{name}-portrait"] = Picture(f"phase portrait of the {what}", _marked(portrait, shown, pairs=flat), (7.5, 6.0))
    if turns:
        rotations = next(iter(turns.values()))
        drawable[f"{name}-sphere"] = Picture("where the third body axis points", _marked(sphere, shown, turns=rotations), (7.0, 6.5))
    if name == "final":
        drawable[f"{name}-momenta"] = Picture("histogram of the last momenta", _marked(spread, shown, momenta=list(p.values())))
    return drawable


def _orientational_order(figure: Any, shown: Observed) -> None:
    """p, P₁ and P₂ with two standard errors on the left, the components of the nematic tensor Q on the right."""
    data = shown.data
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    p, Q = data["polarisation"].values, data["nematic"].values
    names = [*(f"p{axis}" for axis in "xyz"[: len(p)]), "P₁", "P₂"]
    values = np.array([*p, float(data["P1"]), float(data["P2"])])
    errors = np.array([*data["polarisation_stderr"].values, float(data["P1_stderr"]), float(data["P2_stderr"])])
    left.errorbar(range(len(names)), values, yerr=2 * errors, fmt="o", color=colour("blue"), capsize=4)
    left.axhline(0.0, color=colour("soft"), linestyle="--", linewidth=1.0)
    left.set(xticks=range(len(names)), xticklabels=names, ylabel="mean, with two standard errors")
    most = max(float(np.nanmax(np.abs(Q))), np.finfo(float).tiny)
    mesh = right.imshow(Q, cmap=scale(), vmin=-most, vmax=most)
    axes = list("xyz"[: len(Q)])
    right.set(xticks=range(len(Q)), yticks=range(len(Q)), xticklabels=axes, yticklabels=axes, title="nematic tensor Q")
    right.grid(visible=False)
    figure.colorbar(mesh, ax=right, shrink=0.8)
    titled(figure, f"{shown.title}: orientational order", shown.caption)
