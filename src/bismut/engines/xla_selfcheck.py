"""Does the compiler of this process compute what it is given?

    jit(vmap(row ↦ Σ (M row)²))   over many rows   =   the same formula in NumPy

Some releases of XLA get this wrong on processors, silently and only beyond some thousand rows: a long loop over rows is cut into parts and the rows
of a part are read from the wrong place. No simulation is worth anything there, so the formula is tried once in every process, before the first run.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import CompilerError
from bismut.requirements import jax_requirement

ROWS = 40_000  # single precision goes wrong beyond 32 768 rows, double beyond 16 384


@cache
def check_compiler() -> None:
    """Refuse to compute with a compiler that computes wrongly; some hundredths of a second, once in a process."""
    wrong = wrong_rows()
    if wrong:
        raise CompilerError(
            f"The compiler of jaxlib {_jaxlib()} computes incorrectly on {jax.default_backend()}: in jit(vmap(row ↦ Σ(M row)²)) {wrong} of {ROWS} "
            f"rows are not what NumPy gives, so no result could be trusted. Install another one: pip install '{jax_requirement()}'. "
            "If XLA_FLAGS is set, try without it."
        )


def wrong_rows() -> int:
    """How many of the rows differ from what NumPy gives by more than round-off."""
    random = np.random.default_rng(1)
    dtype = np.float64 if jax.config.read("jax_enable_x64") else np.float32
    matrix, rows = random.normal(size=(3, 3)).astype(dtype), random.normal(size=(ROWS, 3)).astype(dtype)
    with jax.ensure_compile_time_eval():
        squares = np.asarray(jax.jit(jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2)))(rows))
    expected = ((rows @ matrix.T) ** 2).sum(1)
    return int((~(np.abs(squares - expected) <= 1e-5 * expected.max())).sum())


def _jaxlib() -> str:
    import jaxlib

    return jaxlib.__version__
