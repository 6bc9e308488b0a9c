"""Runs and results on disk: claimed before they are computed, committed line by line, checked when they are read. docs/store.md is the format."""

from bismut.store.claim import claim
from bismut.store.parts import block_ranges, blocks_of, check_other_parts, merge_parts, part_folder, parts_of
from bismut.store.provenance import read_provenance, run_provenance, source_hash, versions
from bismut.store.repair import Repaired, repair
from bismut.store.resume import asked_counts, begin_run, resume_run
from bismut.store.run_reader import StoredRun, open_run
from bismut.store.run_stored import RunJournal, StoredResult, run_and_store
from bismut.store.run_writer import RunWriter
from bismut.store.save_load import RunFolder, load, read_run, save
from bismut.store.simulation_folder import SimulationFolder
from bismut.store.single_file import keep_file, write_file
from bismut.store.verify_data import DataReport, verify_data
from bismut.store.zarr_writer import LabelledArray, ZarrGroup

__all__ = [
    "DataReport",
    "LabelledArray",
    "Repaired",
    "RunFolder",
    "RunJournal",
    "RunWriter",
    "SimulationFolder",
    "StoredResult",
    "StoredRun",
    "ZarrGroup",
    "asked_counts",
    "begin_run",
    "block_ranges",
    "blocks_of",
    "check_other_parts",
    "claim",
    "keep_file",
    "load",
    "merge_parts",
    "open_run",
    "part_folder",
    "parts_of",
    "read_provenance",
    "read_run",
    "repair",
    "resume_run",
    "run_and_store",
    "run_provenance",
    "save",
    "source_hash",
    "verify_data",
    "versions",
    "write_file",
]
