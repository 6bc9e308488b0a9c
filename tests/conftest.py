"""Double precision, and every shape in a signature checked while the tests run."""

import os

os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
from hypothesis import settings
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
install_import_hook("bismut", "beartype.beartype")
settings.register_profile("laws", derandomize=True, deadline=None, max_examples=10)
settings.load_profile("laws")
