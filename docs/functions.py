"""docs/functions.md: which functions of JAX have machine code, asked of the engine itself. `python docs/functions.py` writes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

PAGE = Path(__file__).with_name("functions.md")

x, A, X = np.linspace(0.1, 0.9, 30), np.eye(3) + 0.1, np.ones((6, 6))
TABLE = np.linspace(0.0, 1.0, 50)
GRID = jsp.interpolate.RegularGridInterpolator((TABLE, TABLE), np.outer(TABLE, TABLE))

FUNCTIONS: dict[str, tuple[Callable, np.ndarray]] = {
    "jnp.interp": (lambda x: jnp.interp(x, TABLE, TABLE), x),
    "jnp.searchsorted, jnp.digitize": (lambda x: jnp.searchsorted(TABLE, x), x),
    "jnp.histogram, jnp.bincount": (lambda x: jnp.histogram(x, bins=5, range=(0.0, 1.0))[0], x),
    "jax.scipy.interpolate.RegularGridInterpolator": (lambda x: GRID(x[None, :2]), x),
    "jax.scipy.ndimage.map_coordinates": (lambda x: jsp.ndimage.map_coordinates(X, [x[:1], x[1:2]], order=1), x),
    "jnp.sort, jnp.argsort, jnp.median": (jnp.sort, x),
    "jax.lax.top_k": (lambda x: jax.lax.top_k(x, 3), x),
    "jnp.tile, jnp.repeat, jnp.roll": (lambda x: jnp.tile(x, 3), x),
    "jnp.cumsum, cumprod, jax.lax.cummax, cumlogsumexp": (jax.lax.cumlogsumexp, x),
    "jnp.convolve, jax.scipy.signal.convolve2d": (lambda x: jnp.convolve(x, x[:4]), x),
    "jax.lax.reduce_window": (lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (3,), (1,), "SAME"), x),
    "jax.lax.while_loop, scan, cond, switch": (lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), x),
    "jnp.linalg.solve, inv, det, cholesky": (jnp.linalg.inv, A),
    "jnp.linalg.qr": (jnp.linalg.qr, A),
    "jnp.linalg.svd, pinv, lstsq, norm": (jnp.linalg.svd, A),
    "jnp.linalg.eigh, eigvalsh": (jnp.linalg.eigh, A),
    "jnp.linalg.eig": (jnp.linalg.eig, A),
    "jax.scipy.linalg.expm": (jsp.linalg.expm, A),
    "jnp.sin, exp, log, tanh and all elementary functions": (lambda x: jnp.sin(jnp.exp(jnp.tanh(x))), x),
    "jax.scipy.special.erf, erfc, erfinv": (jsp.special.erfinv, x),
    "jax.scipy.special.gammaln, gamma, digamma, polygamma, zeta": (lambda x: jsp.special.polygamma(1, x), x),
    "jax.scipy.special.gammainc, gammaincc": (jax.grad(lambda x: jnp.sum(jsp.special.gammainc(x, 2 * x))), x),
    "jax.scipy.special.betainc": (lambda x: jsp.special.betainc(2.0, 3.0, x), x),
    "jax.scipy.special.i0, i0e, i1, i1e": (jsp.special.i0e, x),
    "complex numbers": (lambda x: jnp.abs(jnp.exp(1j * x)), x),
    "jnp.fft": (lambda x: jnp.abs(jnp.fft.fft(x)), x),
    "jax.debug.print, callbacks": (lambda x: jax.debug.print("{}", x), x),
}


def has_code(function: Callable, argument: np.ndarray) -> bool:
    from bismut.engines.native import engine  # noqa: F401  operations are registered
    from bismut.programs import trace
    from bismut.programs.codegen.walk import unknown
    from bismut.programs.decomposition import simplified

    return not unknown(simplified(trace(function, argument).program))


def page() -> str:
    rows = [f"| `{name}` | {'machine code' if has_code(*case) else 'through XLA'} |" for name, case in FUNCTIONS.items()]
    return f"""# Which functions have machine code

Whatever JAX can trace and differentiate may stand in a potential, a noise or an observable. The native engine has machine code for what is marked so
here, for derivatives of it, and for other functions that consist of such; `bm.simulate(..., dry_run=True)` says of any whether it has, and why not.
Without it a step runs through XLA, which is slower, and an observable alone is computed by XLA from recorded states. The functions are named in
`docs/functions.py`, which asks the engine.

| function | runs as |
|---|---|
{chr(10).join(rows)}

Cholesky and LU factors and triangular solves have machine code up to 128 rows, other functions of matrices up to 24 (`eigh`: 32), windows and
kernels up to 512 entries. Signs of eigenvectors and singular vectors are free, and may differ from LAPACK's. Special functions are right to a few
10⁻¹⁵ of max(1, |value|), incomplete ones to 10⁻¹³ where a log x is large. Sorting is stable, NaN comes last, and −0 equals 0, as with XLA.
"""


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    PAGE.write_text(page(), encoding="utf-8")
