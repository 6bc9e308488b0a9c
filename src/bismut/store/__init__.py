"""Results on disk."""

from bismut.store.results import load, save
from bismut.store.runs import Run, check_free, free_folder, read_run, versions, write_run

__all__ = ["Run", "check_free", "free_folder", "load", "read_run", "save", "versions", "write_run"]
