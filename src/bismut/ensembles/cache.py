"""Compiled programs kept on disk between processes, so that only the first run of a program on a machine waits for the compiler.

The folder is bismut/programs in the user's cache folder. BISMUT_PROGRAMS names another one, or switches this off with the word "off"; a folder that
JAX was told to use already is left as it is.
"""

import os
from functools import cache
from pathlib import Path

import jax


@cache
def keep_programs() -> Path | None:
    """Switch the cache on, once; the folder, or None if it is off or chosen by the user."""
    chosen = os.environ.get("BISMUT_PROGRAMS", "")
    if chosen == "off" or jax.config.values["jax_compilation_cache_dir"]:
        return None
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(chosen) if chosen else Path(home) / "bismut" / "programs"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None  # a home that is unknown or cannot be written to is no reason to fail
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    return folder
