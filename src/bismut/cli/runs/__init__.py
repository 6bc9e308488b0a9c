"""Runs as documents: what is typed or written in a run file is one and the same tree of tables, checked, written and carried out here."""
