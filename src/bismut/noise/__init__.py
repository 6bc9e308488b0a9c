"""What drives: Wiener increments as a pure function of (seed, trajectory, step, channel)."""

from bismut.noise.wiener import Index, Stream, Wiener, advance, words

__all__ = ["Index", "Stream", "Wiener", "advance", "words"]
