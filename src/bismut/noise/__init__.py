"""What drives: Wiener increments as a pure function of (seed, trajectory, step, channel)."""

from bismut.noise.wiener import PER_BLOCK, Index, Stream, Wiener, advance, pick, words

__all__ = ["PER_BLOCK", "Index", "Stream", "Wiener", "advance", "pick", "words"]
