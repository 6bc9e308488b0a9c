"""All figures by name: every module of this package that has a FIGURE."""

from bismut.catalogue import chosen, members
from bismut.figures.figure import Figure


def figures() -> dict[str, Figure]:
    return members("bismut.figures", "FIGURE")


def figure(name: str) -> Figure:
    return chosen(name, figures(), "figure", ("all",))
