"""Where size becomes a cliff: python -m benchmarks.sizes [WORD]: potentials of one's own over their sizes, those whose name contains the word.

64 trajectories by Verlet steps. `first` and `run` are processor seconds of the first run, tracing and compiling included, nothing being kept on the
disk, and of the same run again (200 steps), as bismut chooses and by XLA. The engine that was chosen is named, and if it is not the native one, why.
"""

import os
import sys
import time

os.environ["BISMUT_PROGRAMS"] = "off"

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm

jax.config.update("jax_enable_x64", True)
random = np.random.default_rng(0)


def dense(n: int) -> tuple:
    """U = ½ q·A q + Σ (B q)⁴/4: every unknown meets every other."""
    A, B = random.normal(size=(2, n, n)) / n
    A = A @ A.T + np.eye(n)
    return n, lambda q: 0.5 * q @ A @ q + 0.25 * jnp.sum((B @ q) ** 4)


def pair_loop(n: int) -> tuple:
    """Σ_{i<j} exp(−r²) of n points, by two loops of Python."""

    def potential(q):
        x = q.reshape(n, 3)
        return sum(jnp.exp(-jnp.sum((x[i] - x[j]) ** 2)) for i in range(n) for j in range(i)) + 0.5 * q @ q

    return 3 * n, potential


def pair_array(n: int) -> tuple:
    """The same as a sum over an array (n, n)."""

    def potential(q):
        x = q.reshape(n, 3)
        return 0.5 * jnp.sum(jnp.exp(-jnp.sum((x[:, None] - x[None]) ** 2, -1))) + 0.5 * q @ q

    return 3 * n, potential


def network(width: int) -> tuple:
    """A network of two hidden layers on three unknowns."""
    W, V, u = random.normal(size=(width, 3)), random.normal(size=(width, width)) / np.sqrt(width), random.normal(size=width) / np.sqrt(width)
    return 3, lambda q: u @ jnp.tanh(V @ jnp.tanh(W @ q)) + 0.5 * q @ q


def table(n: int) -> tuple:
    """A table of n values, interpolated."""
    x = np.linspace(-10, 10, n)
    return 2, lambda q: jnp.sum(jnp.interp(q, x, np.cos(x))) + 0.5 * q @ q


def spline(n: int) -> tuple:
    """A natural cubic spline through n values, of each unknown: the piece is looked up, and its polynomial evaluated."""
    x, y = np.linspace(-10, 10, n), np.cos(np.linspace(-10, 10, n))
    step = x[1] - x[0]
    bend = np.zeros(n)
    inner = np.diag(np.full(n - 2, 4.0)) + np.diag(np.ones(n - 3), 1) + np.diag(np.ones(n - 3), -1)
    bend[1:-1] = np.linalg.solve(inner, 6 * np.diff(y, 2) / step**2)

    def potential(q):
        k = jnp.clip(jnp.floor((q - x[0]) / step).astype(int), 0, n - 2)
        b = (q - jnp.asarray(x)[k]) / step
        a, of = 1 - b, lambda values: (jnp.asarray(values)[k], jnp.asarray(values)[k + 1])
        (y0, y1), (m0, m1) = of(y), of(bend)
        return jnp.sum(a * y0 + b * y1 + ((a**3 - a) * m0 + (b**3 - b) * m1) * step**2 / 6) + 0.5 * q @ q

    return 2, potential


def matrix(n: int) -> tuple:
    """½ log det(1 + Σ_k q_k S_k) of n × n matrices, by Cholesky."""
    S = random.normal(size=(2, n, n)) / (4 * n)
    S = S + np.swapaxes(S, 1, 2)

    def potential(q):
        C = jnp.linalg.cholesky(2 * jnp.eye(n) + jnp.tensordot(jnp.tanh(q), S, 1))
        return jnp.sum(jnp.log(jnp.diagonal(C))) + 0.5 * q @ q

    return 2, potential


def chain(n: int) -> tuple:
    """n operations one after the other."""

    def potential(q):
        y = q[0]
        for k in range(n):
            y = jnp.sin(y) + q[k % 2] * 0.1 if k % 2 else 0.9 * y
        return y + 0.5 * q @ q

    return 2, potential


FAMILIES = {
    "dense": (dense, (10, 20, 30, 50, 100)),
    "pair loop": (pair_loop, (5, 10, 20, 30)),
    "pair array": (pair_array, (10, 20, 30, 100)),
    "network": (network, (16, 64, 256)),
    "table": (table, (100, 10_000)),
    "spline": (spline, (100, 1000)),
    "matrix": (matrix, (4, 8, 16, 24, 32, 64)),
    "operations": (chain, (100, 1000, 3000)),
}


def measured(build, size: int, mode: str = "auto") -> tuple[float, float, str]:
    dim, potential = build(size)
    clock = time.process_time()
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(dim), potential=potential))
    start = scheme.start(0.3 * random.normal(size=dim), velocity=np.zeros(dim))
    run = lambda: bm.simulate(scheme, start, step=0.01, steps=200, trajectories=64, observe={"T": bm.temperature}, mode=mode, progress=False)
    result = run()
    first = time.process_time() - clock
    clock = time.process_time()
    run()
    reason = [line.strip() for line in str(result).splitlines() if "XLA" in line]
    return first, time.process_time() - clock, reason[0] if reason else "native"


def main() -> None:
    word = " ".join(sys.argv[1:])
    print(f"{'potential':12} {'size':>6} {'first s':>8} {'run s':>8} {'XLA first':>9} {'XLA run':>8}   engine")
    for name, (build, sizes) in FAMILIES.items():
        for size in sizes if word in name else ():
            first, again, engine = measured(build, size)
            xla = measured(build, size, "xla") if engine == "native" else (first, again, engine)
            print(f"{name:12} {size:6d} {first:8.2f} {again:8.3f} {xla[0]:9.2f} {xla[1]:8.3f}   {engine}", flush=True)


if __name__ == "__main__":
    main()
