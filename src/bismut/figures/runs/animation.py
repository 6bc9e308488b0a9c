"""Kept trajectories as an animation: GIF, or MP4 where ffmpeg is installed. Bodies are balls and lines here; pages (`views`) show shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bismut.drawing import Drawing
from bismut.errors import DomainError
from bismut.figures.style import colour, palette, styled
from bismut.views.scene import Scene

FORMATS = {".gif": "pillow", ".mp4": "ffmpeg"}
_DPI = 90


def animate(scene: Scene, file: Path, frames_a_second: int = 20, dark: bool = False) -> Path:
    """Write an animation of a scene, a panel for each trajectory."""
    if file.suffix not in FORMATS:
        raise DomainError(f"An animation is written as one of {', '.join(FORMATS)}, got {file.name!r}.")
    with styled(dark) as plt:
        from matplotlib.animation import FuncAnimation, writers

        if not writers.is_available(FORMATS[file.suffix]):
            raise DomainError(f"{file.suffix} needs {FORMATS[file.suffix]}, which is not installed here. Write a .gif instead.")
        figure = plt.figure(figsize=(4.2 * len(scene.panels), 4.2), dpi=_DPI)
        axes = [_axis(figure, len(scene.panels), i, panel.drawing) for i, panel in enumerate(scene.panels)]
        title = figure.suptitle(f"t = {scene.times[-1]:.4g}", fontsize=11)

        def move(frame: int) -> list[Any]:
            title.set_text(f"t = {scene.times[frame]:.4g}")
            for (_, balls, lines, arrows), panel in zip(axes, scene.panels, strict=True):
                balls._offsets3d = tuple(np.asarray(panel.drawing.x)[frame].T)
                lines.set_segments(_segments(panel.drawing, frame))
                arrows.set_segments(_arrows(panel.drawing, frame))
            return []

        figure.canvas.draw()
        figure.set_layout_engine("none")  # laid out once: nothing that has a place moves
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".gif":
            _write_gif(file, _frames(figure, axes, title, move, len(scene.times)), 1000 / frames_a_second)
        else:
            film = FuncAnimation(figure, move, frames=len(scene.times), interval=1000 / frames_a_second)
            film.save(file, writer=FORMATS[file.suffix], fps=frames_a_second, dpi=_DPI)
        plt.close(figure)
    return file


def _frames(figure: Any, axes: list, title: Any, move: Callable[[int], Any], count: int) -> Iterator[np.ndarray]:
    """Rasters of all frames. What stands still, panes, grids and numbers, is drawn once; only what moves is drawn over it, a tenth of the time."""
    moving = [artist for _, *artists in axes for artist in artists]
    for artist in (title, *moving):
        artist.set_visible(False)
    figure.canvas.draw()
    ground = figure.canvas.copy_from_bbox(figure.bbox)
    for artist in (title, *moving):
        artist.set_visible(True)
    for frame in range(count):
        move(frame)
        figure.canvas.restore_region(ground)
        figure.draw_artist(title)
        for axis, *artists in axes:
            for artist in sorted(artists, key=lambda one: one.do_3d_projection(), reverse=True):  # the farthest first
                axis.draw_artist(artist)
        yield np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()


def _write_gif(file: Path, frames: Iterator[np.ndarray], milliseconds: float) -> None:
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
    colours = pictures[0].quantize(255)  # those of all frames: nothing flickers
    first, *rest = (picture.quantize(palette=colours, dither=Image.Dither.NONE) for picture in pictures)
    first.save(file, save_all=True, append_images=rest, duration=milliseconds, loop=0)


def _axis(figure: Any, count: int, i: int, drawing: Drawing) -> tuple[Any, Any, Any, Any]:
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    axis = figure.add_subplot(1, count, i + 1, projection="3d")
    frames = range(len(drawing.x))
    moving = [shown(drawing, frame).reshape(-1, 3) for shown in (_segments, _arrows) for frame in frames]
    ends = np.concatenate([np.asarray(drawing.x, float).reshape(-1, 3), *moving])
    ends = ends[np.isfinite(ends).all(1)]
    middle, reach = (ends.max(0) + ends.min(0)) / 2, max(0.55 * np.ptp(ends, axis=0).max(), 1e-9)
    for centre, limits in zip(middle, (axis.set_xlim, axis.set_ylim, axis.set_zlim), strict=True):
        limits(centre - reach, centre + reach)
    axis.set_box_aspect((1, 1, 1))
    if drawing.flat:
        axis.view_init(90, -90)
    x = np.asarray(drawing.x)[0]
    balls = axis.scatter(*x.T, c=[palette().series[b % 6] for b in range(len(x))], s=60 if len(x) < 50 else 12, depthshade=False)
    lines = axis.add_collection3d(Line3DCollection(_segments(drawing, 0), colors=colour("soft"), linewidths=1.5), autolim=False)
    arrows = axis.add_collection3d(Line3DCollection(_arrows(drawing, 0), colors=colour("ink"), linewidths=1.5), autolim=False)
    return axis, balls, lines, arrows


def _segments(drawing: Drawing, frame: int) -> np.ndarray:
    """Ends of all lines, (n, 2, 3)."""
    segments = [np.zeros((0, 2, 3))]
    for line in drawing.lines:
        first, second = np.broadcast_arrays(np.atleast_1d(line.first), np.atleast_1d(line.second))
        ends = [_points(drawing, frame, body, at) for body, at in ((first, line.first_at), (second, line.second_at))]
        segments.append(np.stack(ends, 1))
    return np.concatenate(segments)


def _arrows(drawing: Drawing, frame: int) -> np.ndarray:
    """The third axis of every body that has an orientation, (n, 2, 3)."""
    if drawing.R is None:
        return np.zeros((0, 2, 3))
    x, sizes = np.asarray(drawing.x, float)[frame], [np.max(np.asarray(part.size, float)) for part in drawing.parts if part.body is None]
    reach = 1.3 * max(sizes, default=1.0)
    return np.stack([x, x + reach * np.asarray(drawing.R)[frame][..., 2]], 1)


def _points(drawing: Drawing, frame: int, bodies: np.ndarray, at: Any) -> np.ndarray:
    """x_b + R_b z; number −1 is space itself."""
    z = np.broadcast_to(np.asarray(at, float), (len(bodies), 3))
    moved = z if drawing.R is None else np.einsum("nij,nj->ni", np.asarray(drawing.R)[frame][bodies], z)
    return np.where((bodies < 0)[:, None], z, np.asarray(drawing.x, float)[frame][bodies] + moved)
