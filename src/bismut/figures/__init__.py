"""Pictures of the paper and ours, from results; the catalogue finds them."""

from bismut.figures.catalogue import figure, figures
from bismut.figures.figure import FORMATS, Figure, Files, Table, as_text

__all__ = ["FORMATS", "Figure", "Files", "Table", "as_text", "figure", "figures"]
