"""Driving noise: paths as pure functions of (seed, trajectory, step, channel)."""

from bismut.noise.fractional import FractionalBrownian
from bismut.noise.generator import Index, Stream, advance, counter, numpy_counter
from bismut.noise.jumps import Jumps
from bismut.noise.ornstein_uhlenbeck import OrnsteinUhlenbeck
from bismut.noise.path import Path
from bismut.noise.recorded import Recorded
from bismut.noise.wiener import PER_CALL, Wiener, pick

__all__ = [
    "PER_CALL",
    "FractionalBrownian",
    "Index",
    "Jumps",
    "OrnsteinUhlenbeck",
    "Path",
    "Recorded",
    "Stream",
    "Wiener",
    "advance",
    "counter",
    "numpy_counter",
    "pick",
]
