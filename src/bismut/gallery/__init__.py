"""One system per file, each with its physics and its exact facts; the catalogue finds them."""

from bismut.gallery.ballistic_pendulum import ballistic_pendulum, equilibrium_points
from bismut.gallery.catalogue import entries, entry
from bismut.gallery.entry import Entry, Fact, Measured, Trial
from bismut.gallery.heavy_top import heavy_top

__all__ = ["Entry", "Fact", "Measured", "Trial", "ballistic_pendulum", "entries", "entry", "equilibrium_points", "heavy_top"]
