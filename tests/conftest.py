"""Double precision; every shape in a signature checked while the tests run; compiled programs kept between runs."""

import os
from pathlib import Path

os.environ.setdefault("JAX_ENABLE_X64", "1")
# Compiling is nearly all the time of these tests. With fewer passes it takes two thirds of it; `make measure` runs what users run.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false")

import jax
from hypothesis import settings
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

# All rooms but the evaluation of lanes, which calls small functions a hundred thousand times while it traces.
ROOMS = ("spaces", "noise", "mechanics", "actions", "flows", "findings", "store", "gallery", "figures")
ENSEMBLES = ("block", "checks", "ensemble", "march", "moments", "observable", "observers", "outcome", "result", "simulate", "trajectory")
install_import_hook([*(f"bismut.{room}" for room in ROOMS), *(f"bismut.ensembles.{file}" for file in ENSEMBLES)], "beartype.beartype")

settings.register_profile("laws", derandomize=True, deadline=None, max_examples=6)
settings.load_profile("laws")
