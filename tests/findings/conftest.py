"""Programs that run briefly are compiled without optimisation: compiling is most of their time."""

import jax
import pytest


@pytest.fixture
def compiled_quickly():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
