"""Loops over bodies and over pairs of bodies, each as one equation of a jaxpr instead of arrays over bodies."""

from bismut.body_loops.api import Pair, Pairs, each, pairs, total
from bismut.body_loops.loop import Bonds, LoopLayout, Reach, each_p, expanded, items, pairs_p, pruned
from bismut.body_loops.round_robin import each_pair, pair_indices, pair_number

__all__ = [
    "Bonds",
    "LoopLayout",
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
