"""Work that repeats, for each body and for each pair, as one equation instead of arrays over bodies."""

from bismut.repetition.loop import Bonds, Layout, Reach, each_p, expanded, items, pairs_p
from bismut.repetition.mapped import Pair, Pairs, each, pairs, total
from bismut.repetition.pruning import pruned
from bismut.repetition.tournament import each_pair, pair_indices, pair_number

__all__ = [
    "Bonds",
    "Layout",
    "Pair",
    "Pairs",
    "Reach",
    "each",
    "each_p",
    "each_pair",
    "expanded",
    "items",
    "pair_indices",
    "pair_number",
    "pairs",
    "pairs_p",
    "pruned",
    "total",
]
