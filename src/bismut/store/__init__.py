"""Runs and results on disk: claimed before they are computed, committed line by line, checked when they are read. docs/store.md is the format."""

from bismut.store.arrays import Group, Labelled
from bismut.store.claim import claim, claim_numbered
from bismut.store.going_on import asked_of_request, compare, take_up
from bismut.store.journal import RunJournal
from bismut.store.keeping import KeptRun, carry_out_kept, deadline_after
from bismut.store.origin import origin, source_hash, versions
from bismut.store.reading import StoredRun, open_run
from bismut.store.repairing import Repaired, repair
from bismut.store.results import load, save
from bismut.store.run import Run
from bismut.store.runs import RunFolder, claim_run, origin_of, read_run, write_run
from bismut.store.simulate import simulate
from bismut.store.verifying import DataReport, verify_data

__all__ = [
    "DataReport",
    "Group",
    "KeptRun",
    "Labelled",
    "Repaired",
    "Run",
    "RunFolder",
    "RunJournal",
    "StoredRun",
    "asked_of_request",
    "carry_out_kept",
    "claim",
    "claim_numbered",
    "claim_run",
    "compare",
    "deadline_after",
    "load",
    "open_run",
    "origin",
    "origin_of",
    "read_run",
    "repair",
    "save",
    "simulate",
    "source_hash",
    "take_up",
    "verify_data",
    "versions",
    "write_run",
]
