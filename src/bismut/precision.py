"""Double precision, or an error that says how to get it.

JAX computes in float32 unless told otherwise at start-up. An integrator that is symplectic to 1e−16 is pointless in silent float32, so
every system names its precision and refuses to begin in another one.
"""

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError, PrecisionError


def real_type(precision: str) -> np.dtype:
    """The dtype for a named precision; an error with the line to add if JAX is not set up for it."""
    if precision not in ("float64", "float32"):
        raise DomainError(f'precision must be "float64" or "float32", got {precision!r}.')
    if precision == "float64" and not jax.config.read("jax_enable_x64"):
        raise PrecisionError(
            "bismut works in float64, but JAX is set to float32. Add this line before the first array is made:\n"
            '    jax.config.update("jax_enable_x64", True)\n'
            'Single precision on purpose: System(..., precision="float32").'
        )
    return np.dtype(precision)


def cast(tree, dtype):
    """All leaves of a tree of arrays or numbers in one dtype."""
    return jax.tree.map(lambda leaf: _array(leaf, dtype), tree)


def cast_parameters(tree, dtype):
    """Parameters in one dtype; arrays of integers and of truth values, say indices, stay what they are, and a Python number is a real one."""
    exact = lambda leaf: hasattr(leaf, "dtype") and (jnp.issubdtype(leaf.dtype, jax.dtypes.extended) or np.dtype(leaf.dtype).kind in "iub")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if exact(leaf) else _array(leaf, dtype), tree)


def _array(leaf, dtype):
    """One of them; a number of Python becomes one of NumPy first, or JAX would compile a conversion of its own for it."""
    return jnp.asarray(np.asarray(leaf, dtype) if type(leaf) in (int, float) else leaf, dtype)
