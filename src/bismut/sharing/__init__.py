"""Runs leave bismut, and states come in: formats that other programs read and write, one file each."""

from bismut.sharing.diagnostics import to_arviz
from bismut.sharing.exporting import export
from bismut.sharing.formats import formats
from bismut.sharing.importing import import_state, read_frame

__all__ = ["export", "formats", "import_state", "read_frame", "to_arviz"]
