"""Whether a surface is in pieces that no chain leaves.

    draws joined to their nearest neighbours, the closest first (single linkage):      a piece is a cluster of whole chains

A chain that goes everywhere has its draws among those of all others, so no cluster on the way to the last one holds all draws of some chains and of
no others: of m chains with n draws each, that a cluster of n draws is one chain has a probability of order m^(1−n). Pieces nearer to each other than
the draws that are looked at, four thousand, remain unnoticed. Means and R̂ of coordinates see nothing of pieces around the same middle, as concentric
circles are.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

EACH, CHAINS = 8, 256  # draws of a chain that are needed, and chains at most that are looked at
_POINTS = 4096  # in half a second


def pieces(q: Any) -> int:
    """How many clusters of whole chains there are, of points (chain, draw, ...); 1 if chains meet."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(q)]
    chains, draws = leaves[0].shape[:2]
    which, when = np.arange(min(chains, CHAINS)), np.linspace(0, draws - 1, min(draws, _POINTS // min(chains, CHAINS))).astype(int)
    x = np.concatenate([leaf[which][:, when].reshape(len(which), len(when), -1) for leaf in leaves], -1)
    return _whole(x.reshape(-1, x.shape[-1]), len(which), len(when))


def _whole(x: np.ndarray, chains: int, each: int) -> int:
    """The largest number of disjoint clusters that are made of whole chains and leave none out."""
    from scipy.cluster.hierarchy import linkage

    if chains < 2:
        return 1
    members = [1 << (k // each) for k in range(len(x))]  # the chains of each cluster, as bits
    sizes, split = [1] * len(x), [1] * len(x)
    for a, b in linkage(x, "single")[:, :2].astype(int):
        chain, size = members[a] | members[b], sizes[a] + sizes[b]
        apart = not members[a] & members[b] and all(sizes[k] == each * members[k].bit_count() for k in (a, b))
        members.append(chain)
        sizes.append(size)
        split.append(split[a] + split[b] if apart else 1)
    return split[-1]
