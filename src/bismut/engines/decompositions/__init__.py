"""Primitives expressed by simpler ones, for engines that have no code of their own for them."""

from bismut.engines.decompositions import arrays, bessel, gamma, incomplete, matrices, ordering, windows  # noqa: F401  they are registered
from bismut.engines.decompositions.table import decomposition, names, simplified

__all__ = ["decomposition", "names", "simplified"]
