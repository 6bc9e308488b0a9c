"""What is looked at: pages of moving bodies. Plots are drawn in `figures`."""

from bismut.views.view import View, view

__all__ = ["View", "view"]
