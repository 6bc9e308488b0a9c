"""Rigid bodies in space: ellipsoids with two poles."""

import numpy as np

from bismut.figures.style import colour


def draw_bodies(axis, x: np.ndarray, R: np.ndarray, inertia, size: float = 0.8) -> None:
    """Bodies at x (K, 3) with orientations R (K, 3, 3) as their ellipsoids of inertia (unit mass), the half towards the third axis vermilion.

    A homogeneous ellipsoid of unit mass with semi-axes a has I₁ = (a₂² + a₃²)/5, so a₁² = 5 (I₂ + I₃ − I₁)/2.
    """
    from matplotlib.colors import LightSource, to_rgb

    moments = np.asarray(inertia, float)
    semi = size * np.sqrt(2.5 * (moments.sum() - 2 * moments))
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 17))
    surface = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)], -1)
    light = LightSource(azdeg=225, altdeg=45)
    for place, turn in zip(x, R, strict=True):
        points = place + (surface * semi) @ turn.T
        halves = np.where((surface[..., 2:] > 0), to_rgb(colour("vermilion")), to_rgb(colour("blue")))
        shade = light.shade_normals(surface / semi @ turn.T / np.linalg.norm(surface / semi, axis=-1, keepdims=True))
        axis.plot_surface(
            *np.moveaxis(points, -1, 0), facecolors=np.clip(halves * (0.8 + 0.4 * shade[..., None]), 0, 1), rstride=1, cstride=1, linewidth=0
        )
        tip = place + 1.6 * semi[2] * turn[:, 2]
        axis.plot(*np.stack([place, tip], -1), color=colour("ink"), linewidth=1.2)
    reach = np.abs(x - x.mean(0)).max() + 0.3
    for centre, limits in zip(x.mean(0), (axis.set_xlim, axis.set_ylim, axis.set_zlim), strict=True):
        limits(centre - reach, centre + reach)
    axis.set_box_aspect((1, 1, 1), zoom=0.95)
    axis.set_xlabel("x₁ (core diameters)")
    axis.set_ylabel("x₂")
    axis.set_zlabel("x₃")
    axis.set_title("the bodies")
