"""Observers of a run, in constant memory; one per file."""
