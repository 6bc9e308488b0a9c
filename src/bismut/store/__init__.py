"""Runs and results on disk: claimed before they are computed, committed line by line, checked when they are read. docs/store.md is the format."""

from bismut.store.arrays import Group, Labelled
from bismut.store.claim import claim, claim_numbered
from bismut.store.reading import StoredRun, open_run
from bismut.store.results import load, save
from bismut.store.run import Run
from bismut.store.runs import RunFolder, claim_run, read_run, versions, write_run
from bismut.store.verifying import DataReport, verify_data

__all__ = [
    "DataReport",
    "Group",
    "Labelled",
    "Run",
    "RunFolder",
    "StoredRun",
    "claim",
    "claim_numbered",
    "claim_run",
    "load",
    "open_run",
    "read_run",
    "save",
    "verify_data",
    "versions",
    "write_run",
]
