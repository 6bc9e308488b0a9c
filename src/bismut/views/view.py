"""`view`: recorded trajectories as a page of moving bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bismut.drawing import Drawing
from bismut.errors import DomainError
from bismut.formatting import counted
from bismut.gallery import Entry
from bismut.mechanics import Body, System, box_of
from bismut.store import write_file
from bismut.views.default_drawing import default_drawing
from bismut.views.document import page
from bismut.views.motion import Motion, colours, motions
from bismut.views.scene import Panel, Scene


@dataclass(frozen=True, repr=False)
class View:
    """A page of moving bodies. A notebook shows it; `save(path)` writes it to one file that needs nothing else, and no network."""

    scene: Scene

    @cached_property
    def html(self) -> str:
        """The page as text."""
        return page(self.scene)

    def save(self, path: str | Path) -> Path:
        """Write the page, and return where it is."""
        return write_file(path, self.html.encode())

    def __repr__(self) -> str:
        bodies = max(np.shape(panel.drawing.x)[1] for panel in self.scene.panels)
        shown = counted(len(self.scene.panels), "trajectory", "trajectories")
        return f"View({self.scene.title}: {shown}, {len(self.scene.times)} frames, {bodies} bodies)"

    def _repr_html_(self) -> str:
        frame = f'title="{escape(self.scene.title)}, recorded" style="width:100%;height:560px;border:0" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{escape(self.html, quote=True)}"></iframe>'


def view(
    source: Any,
    *,
    frames: int = 200,
    trajectories: Sequence[int] | None = None,
    shapes: Body | None = None,
    box: Any = None,
    picture: Callable[[System, Any], Drawing] | None = None,
    system: System | Entry | None = None,
    title: str | None = None,
) -> View:
    """Moving bodies to look at: in a notebook as they are, otherwise view(...).save("page.html").

    source        a Result whose observers hold paths(...), a Trajectory, the folder of a run, or a list of those, side by side
    frames        the maximum number of frames, evenly spaced in time
    trajectories  which of the kept ones to show, by their place among them; by default all, but at most nine
    shapes        the point clouds that bodies are made of: body(...) for all, or stack_bodies([...])
    box           the periodic box, if the system does not define it
    picture       how a system is drawn: of the system and q, time along the first axis, a Drawing
    system        a System or an Entry of the gallery, if the source does not know it
    """
    if isinstance(frames, bool) or frames < 1:
        raise DomainError(f"frames must be a number ≥ 1, got {frames!r}.")
    recorded = motions(source, system)
    chosen = range(min(len(recorded), 9)) if trajectories is None else list(trajectories)
    if not len(chosen) or min(chosen) < 0 or max(chosen) >= len(recorded):
        raise DomainError(f"{len(recorded)} trajectories were kept, numbered 0 ... {len(recorded) - 1}, got trajectories={list(chosen)}.")
    some = [_thinned(recorded[number], frames) for number in chosen]
    if any(len(motion.times) != len(some[0].times) or not np.allclose(motion.times, some[0].times) for motion in some):
        raise DomainError("Trajectories side by side need the same times. Show them one by one, or run them with the same step and stride.")
    panels, sides = [], box_of(box)
    for motion in some:
        drawing = drawn(motion, picture, shapes)
        if sides is not None:
            drawing = drawing._replace(box=(*sides.lengths, *[np.inf] * (3 - len(sides.lengths))))
        drawing = drawing if drawing.box is None else drawing._replace(x=wrapped(np.asarray(drawing.x, float), drawing.box))
        panels.append(Panel(motion.label, drawing, colours(motion, np.shape(drawing.x)[1])))
    name = title or (source if isinstance(source, str) else source.name if isinstance(source, Path) else str(some[0].system and some[0].system.space))
    return View(Scene(str(name), some[0].times, panels))


def _thinned(motion: Motion, frames: int) -> Motion:
    count = len(motion.times)
    which = np.unique(np.round(np.linspace(0, count - 1, min(frames, count))).astype(int))
    q, p = (jax.tree.map(lambda leaf: np.asarray(leaf)[which], tree) for tree in (motion.q, motion.p))
    return Motion(motion.label, motion.times[which], q, p, motion.system, motion.picture)


def drawn(motion: Motion, picture: Callable | None, shapes: Body | None) -> Drawing:
    draw = picture or (motion.picture if shapes is None else None)
    if draw is None or (motion.system is None and picture is None):
        return default_drawing(motion.system, motion.q if jax.tree.leaves(motion.q) else motion.p, shapes)
    drawing = draw(motion.system, motion.configuration)  # pyright: ignore[reportArgumentType]
    if not isinstance(drawing, Drawing):
        raise DomainError(f"A picture must return a Drawing, got {type(drawing).__name__}.")
    return drawing


def wrapped(x: np.ndarray, box: Sequence[float]) -> np.ndarray:
    """Positions moved by sides of the box into −l/2 ... l/2."""
    sides = np.asarray(box, float)
    closed = np.isfinite(sides)
    lengths = np.where(closed, sides, 1.0)
    return np.where(closed, x - lengths * np.round(x / lengths), x)
