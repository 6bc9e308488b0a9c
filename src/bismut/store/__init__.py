"""Runs and results on disk: claimed before they are computed, committed line by line, checked when they are read. docs/store.md is the format."""

from bismut.store.arrays import Group, Labelled
from bismut.store.claim import claim, claim_numbered
from bismut.store.going_on import asked_of_request, compare, take_up
from bismut.store.journal import RunJournal
from bismut.store.keeping import KeptRun, carry_out_kept, deadline_after
from bismut.store.origin import origin, source_hash, versions
from bismut.store.parts import Gathered, blocks_of, check_others, gather, merge_parts, part_folder, parts_of, told
from bismut.store.reading import StoredRun, open_run
from bismut.store.repairing import Repaired, repair
from bismut.store.results import load, save
from bismut.store.run import Run
from bismut.store.runs import RunFolder, claim_run, origin_of, read_run, write_run
from bismut.store.simulate import simulate
from bismut.store.verifying import DataReport, verify_data

__all__ = [
    "DataReport",
    "Gathered",
    "Group",
    "KeptRun",
    "Labelled",
    "Repaired",
    "Run",
    "RunFolder",
    "RunJournal",
    "StoredRun",
    "asked_of_request",
    "blocks_of",
    "carry_out_kept",
    "check_others",
    "claim",
    "claim_numbered",
    "claim_run",
    "compare",
    "deadline_after",
    "gather",
    "load",
    "merge_parts",
    "open_run",
    "origin",
    "origin_of",
    "part_folder",
    "parts_of",
    "read_run",
    "repair",
    "save",
    "simulate",
    "source_hash",
    "take_up",
    "told",
    "verify_data",
    "versions",
    "write_run",
]
