"""Runs leave bismut, and states come in: formats that other programs read and write, one file each."""

from bismut.sharing.export import export, to_arviz
from bismut.sharing.formats import formats
from bismut.sharing.import_state import import_state, read_frame
from bismut.sharing.structure import Structure, read_structure

__all__ = ["Structure", "export", "formats", "import_state", "read_frame", "read_structure", "to_arviz"]
