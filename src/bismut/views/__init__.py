"""What is looked at: pages of moving bodies, recorded (`view`) or running (`page`). Plots are drawn in `figures`."""

from bismut.views.running import Page, page, page_of
from bismut.views.view import View, view

__all__ = ["Page", "View", "page", "page_of", "view"]
