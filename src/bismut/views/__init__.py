"""What is looked at: pages of moving bodies. Plots are drawn in `figures`."""

from bismut.views.view import View, scene_of, view

__all__ = ["View", "scene_of", "view"]
