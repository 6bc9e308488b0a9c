"""The Langevin pendulum as a C program, as a bare scan, and by diffrax.

p ← p − h sin q − h p + √(2h) z,     q ← q + h p
"""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import Missing, Ready, timed

N = 10_000
STEP = 0.05


def program() -> Ready:
    """The C program, compiled here and now."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Missing("no C compiler: install gcc")
    binary = Path(tempfile.mkdtemp()) / "pendulum"
    command = [compiler, "-O3", "-march=native", "-ffast-math", str(Path(__file__).with_name("pendulum.c")), "-o", str(binary), "-lm"]
    if subprocess.run([*command, "-lmvec"], capture_output=True, check=False).returncode:
        subprocess.run(command, check=True, capture_output=True)
    run = lambda: [float(word) for word in subprocess.run([str(binary), "2000"], capture_output=True, text=True, check=True).stdout.split()]
    return Ready(lambda: run()[0], {"temperature": run()[1]})


def scan() -> Ready:
    """A bare lax.scan over arrays, with jax.random.normal."""
    import jax
    import jax.numpy as jnp

    def step(carry, key):
        q, p = carry
        p = p - STEP * jnp.sin(q) - STEP * p + (2 * STEP) ** 0.5 * jax.random.normal(key, (N,), float)
        return (q + STEP * p, p), None

    @jax.jit
    def run(key):
        (q, p), _ = jax.lax.scan(step, (jnp.zeros(N), jnp.zeros(N)), jax.random.split(key, 1000))
        return q, p

    return compiled(run, jax.random.key(0), N * 1000, lambda out: out[1])


def diffrax() -> Ready:
    """diffrax Euler, vmapped, on an unsafe Brownian path: the fastest way it has."""
    import diffrax as dfx
    import jax
    import jax.numpy as jnp

    steps = 200
    drift = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], -jnp.sin(y[0]) - y[1]]))

    def one(key):
        path = dfx.UnsafeBrownianPath(shape=(), key=key)
        noise = dfx.ControlTerm(lambda t, y, args: jnp.array([0.0, 2.0**0.5]), path)
        terms = dfx.MultiTerm(drift, noise)
        found = dfx.diffeqsolve(
            terms, dfx.Euler(), 0.0, steps * STEP, STEP, jnp.zeros(2), saveat=dfx.SaveAt(t1=True), adjoint=dfx.DirectAdjoint(), max_steps=steps + 1
        )
        return found.ys[0]

    run = jax.jit(jax.vmap(one))
    return compiled(run, jax.random.split(jax.random.key(0), N), N * steps, lambda y: y[:, 1])


def compiled(run: Callable, argument, path_steps: int, momentum: Callable) -> Ready:
    """A function of JAX, called again and again."""
    import jax
    import numpy as np

    out = jax.block_until_ready(run(argument))

    def work() -> float:
        jax.block_until_ready(run(argument))
        return float(path_steps)

    return Ready(timed(work), {"temperature": float(np.mean(np.asarray(momentum(out)) ** 2))})


CONTESTANTS = {"C": program, "scan": scan, "diffrax": diffrax}
