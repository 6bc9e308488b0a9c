"""Lanes: small-array code for one trajectory as straight vector code for many."""

from bismut.ensembles.lanes.evaluate import LARGEST, Batch, Program, join, largest_array, left_to_vmap, operations, split

__all__ = ["LARGEST", "Batch", "Program", "join", "largest_array", "left_to_vmap", "operations", "split"]
