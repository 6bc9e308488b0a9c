"""Double precision; every shape in a signature checked while the tests run; compiled programs kept between runs."""

import ctypes
import gc
import os
import signal
import sys
from pathlib import Path

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes that tests begin would compile every module again

import jax
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

CACHE = Path(__file__).parents[1] / ".cache"
os.environ.setdefault("BISMUT_PROGRAMS", str(CACHE / "programs"))  # machine code; processes that tests begin share it
# Two imports of arviz at once write one file, and one of them fails.
os.environ["XDG_CACHE_HOME"] = str(CACHE / os.environ.get("PYTEST_XDIST_WORKER", "alone"))
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", str(CACHE / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # two processes meet the same small operations

# What nohup, or a shell that began the tests in the background, had them ignore, processes that tests begin would inherit.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

ROOMS = ("spaces", "noise", "mechanics", "actions", "flows", "ensembles", "findings")  # those whose signatures have shapes
install_import_hook([f"bismut.{room}" for room in ROOMS], "beartype.beartype")

settings.register_profile("laws", derandomize=True, deadline=None, max_examples=6)
settings.load_profile("laws")


# Jaxprs are many small objects that stay: looking through all of them again and again for cycles took a tenth of the time. So what is there after a
# module is not looked at any more, neither on the way nor by pytest, which at the end looks five times.
gc.freeze()
gc.set_threshold(100_000, 50, 100)

_MUCH = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4  # bytes of a process beyond which compiled programs are forgotten


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    """Thousands of compiled programs may not fit into memory together; what is forgotten is compiled again, so that is a last resort."""
    yield
    pages = Path("/proc/self/statm")
    if pages.exists() and int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > _MUCH:
        jax.clear_caches()
        gc.unfreeze()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # without it the process stays as large, and the next module would forget everything again
    gc.freeze()


@pytest.fixture(autouse=True)
def processes_end():
    """A test that fails leaves no process that runs on and slows down the others."""
    yield
    if (commands := sys.modules.get("tests.commands")) is not None:
        while commands.RUNNING:
            commands.RUNNING.pop().kill()
