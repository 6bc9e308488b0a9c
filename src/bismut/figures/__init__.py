"""Figures of the paper and of bismut, made from results; a file registers its figure by a FIGURE."""

from bismut.errors import BismutError, nearest
from bismut.figures.figure import FORMATS, Figure, FigureFiles, FigureTable, as_text
from bismut.registry import FIGURES

__all__ = ["FORMATS", "Figure", "FigureFiles", "FigureTable", "as_text", "figure", "figures"]


def figures() -> dict[str, Figure]:
    """All figures by name."""
    return dict(FIGURES.items())


def figure(name: str) -> Figure:
    if name not in FIGURES:
        raise BismutError(f"There is no figure {name!r}. {nearest(name, [*FIGURES.names(), 'all'])}")
    return FIGURES[name]
