"""Results on disk."""

from bismut.store.results import load, save

__all__ = ["load", "save"]
