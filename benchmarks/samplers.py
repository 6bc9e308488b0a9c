"""python -m benchmarks.samplers: effective draws per second of processor time, of `bm.sample` and of what one would use instead.

    ESS = smallest bulk size of a coordinate,  of the draws alone:  burn-in, adaptation and compilation are not counted on either side

BlackJAX (NUTS with window adaptation, dense masses; generalised HMC with MEADS) on ℝⁿ, with 1024 chains of either side in one program; mici
(constrained HMC, multinomial and dynamic) on surfaces, chain by chain, as it runs. Rotations are a group here and, for mici, 3 × 3 matrices with
RᵀR = 1, of which det R = 1 is one component. Rounds alternate, and the median is shown. A peer that is missing is left out.

    goals: ≥ 2 × on ℝⁿ, ≥ 5 × on surfaces and groups
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.engines.native.target import processor
from bismut.executors.threads import cores
from bismut.samplers import diagnostics

Y, SIGMA = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
N = 100
COVARIANCE = 0.95 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N))) * np.outer(*[np.linspace(0.5, 2, N)] * 2)
PRECISION = np.linalg.inv(COVARIANCE)
BIG, SMALL, ALPHA = 1.0, 0.5, 0.9  # radii and amplitude of mici's torus


def gaussian(x):
    return -0.5 * x @ jnp.asarray(PRECISION) @ x


def schools(x):
    mu, log_tau, z = x[0], x[1], x[2:]
    theta = mu + jnp.exp(log_tau) * z
    prior = -0.5 * (mu / 5) ** 2 - jnp.log1p((jnp.exp(log_tau) / 5) ** 2) + log_tau - 0.5 * z @ z
    return prior - 0.5 * jnp.sum(((jnp.asarray(Y) - theta) / jnp.asarray(SIGMA)) ** 2)


def tube(q, np=jnp):
    return np.hypot(q[0], q[1]) - BIG


def torus(q, np=jnp):
    theta, phi = np.arctan2(q[1], q[0]), np.arctan2(q[2], tube(q, np))
    return np.log1p(np.sin(4 * theta) * np.cos(phi) * ALPHA) - np.log1p(SMALL * np.cos(phi) / BIG)


def bingham(q, np=jnp):
    return q @ (np.array([3.0, -1.0, 0.5]) * q)


FISHER = np.array([[3.0, 0.4, 0.0], [-0.2, 1.0, 0.3], [0.0, 0.1, -0.5]])
ENTRIES = np.triu_indices(3)


def fisher(R, np=jnp):
    return np.sum(np.asarray(FISHER) * R.reshape(3, 3))


def orthogonal(q, np=jnp):
    R = q.reshape(3, 3)
    return 0.5 * (R.T @ R - np.eye(3))[ENTRIES]


SURFACES = {
    "torus of mici": (torus, lambda q, np=jnp: np.stack([tube(q, np) ** 2 + q[2] ** 2 - SMALL**2]), np.array([BIG + SMALL, 0.0, 0.0])),
    "Bingham on the sphere": (bingham, lambda q, np=jnp: np.stack([q @ q - 1]), np.array([1.0, 0.0, 0.0])),
    "matrix Fisher on SO(3)": (fisher, orthogonal, np.eye(3).ravel()),
}


def ess(x: np.ndarray) -> float:
    """Of (chain, draw, coordinate, ...)."""
    x = x.reshape(*x.shape[:2], -1)
    return min(diagnostics.ess_bulk(x[..., k]) for k in range(x.shape[-1]))


def ours(space: Any, log_density: Callable, chains: int, draws: int, **settings: Any) -> Callable[[], float]:
    """A function that makes draws and says how many effective ones a second."""
    run = bm.sample(space, log_density, chains=chains, draws=8, seed=1, progress=False, **settings)

    def measured() -> float:
        clock = time.process_time()
        kept = run.frozen.draw(draws)[1]
        seconds = time.process_time() - clock
        return ess(np.asarray(jax.vmap(jax.vmap(run.target.point))(kept.q))) / seconds

    return measured


def blackjax_nuts(log_density: Callable, size: int, chains: int, draws: int) -> Callable[[], float]:
    import blackjax

    warm = blackjax.window_adaptation(blackjax.nuts, log_density, is_mass_matrix_diagonal=False)
    (state, parameters), _ = warm.run(jax.random.key(0), jnp.zeros(size) + 0.1, 1000)
    kernel = blackjax.nuts(log_density, **parameters)
    starts = jax.vmap(kernel.init)(jnp.broadcast_to(state.position, (chains, size)))
    return _scanned(kernel.step, starts, draws)


def blackjax_ghmc(log_density: Callable, size: int, chains: int, draws: int) -> Callable[[], float]:
    import blackjax

    warm = blackjax.meads_adaptation(log_density, chains)
    starts = 0.1 * jax.random.normal(jax.random.key(3), (chains, size))
    (states, parameters), _ = warm.run(jax.random.key(0), starts, 1000)
    return _scanned(blackjax.ghmc(log_density, **parameters).step, states, draws)


def _scanned(step: Callable, states: Any, draws: int) -> Callable[[], float]:
    @jax.jit
    def run(key, states):
        def one(states, key):
            states, _ = jax.vmap(step)(jax.random.split(key, len(jax.tree.leaves(states)[0])), states)
            return states, states.position

        states, positions = jax.lax.scan(one, states, jax.random.split(key, draws))
        return states, jnp.moveaxis(positions, 0, 1)

    states, _ = jax.block_until_ready(run(jax.random.key(1), states))  # forgets where it began

    def measured() -> float:
        clock = time.process_time()
        positions = jax.block_until_ready(run(jax.random.key(2), states))[1]
        seconds = time.process_time() - clock
        return ess(np.asarray(positions)) / seconds

    return measured


def mici_chain(name: str, draws: int) -> Callable[[], float]:
    import mici

    log_density, constraint, start = SURFACES[name]
    slope, G = jax.jit(jax.grad(lambda q: -log_density(q))), jax.jit(jax.jacobian(constraint))
    system = mici.systems.DenseConstrainedEuclideanMetricSystem(
        neg_log_dens=lambda q: -float(log_density(q, np)),
        grad_neg_log_dens=lambda q: np.asarray(slope(q)),
        constr=lambda q: constraint(q, np),
        jacob_constr=lambda q: np.asarray(G(q)),
    )
    integrator = mici.integrators.ConstrainedLeapfrogIntegrator(system)
    sampler = mici.samplers.DynamicMultinomialHMC(system, integrator, np.random.default_rng(1))
    trace = lambda state: {"q": state.pos}
    common = {"trace_funcs": [trace], "display_progress": False}
    warmed = sampler.sample_chains(200, 1, [start], adapters=[mici.adapters.DualAveragingStepSizeAdapter(0.8)], **common)

    def measured() -> float:
        clock = time.process_time()
        _, traces, _ = sampler.sample_chains(0, draws, warmed.final_states, **common)
        seconds = time.process_time() - clock
        return ess(np.asarray(traces["q"])) / seconds

    return measured


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.samplers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--json", type=Path, default=Path("output") / "samplers.json")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    rounds, draws, chains = (2, 50, 256) if asked.quick else (3, 100, 1024)
    plane = {"Gaussian, 100 correlated": (gaussian, N), "eight schools": (schools, 10)}
    rows: list[tuple[str, str, Callable, Callable, float]] = []
    for work, (density, size) in plane.items():
        for peer, make in (("BlackJAX NUTS", blackjax_nuts), ("BlackJAX GHMC", blackjax_ghmc)):
            mine = lambda density=density, size=size: ours(bm.Euclidean(size), density, chains, draws)
            rows.append((work, peer, mine, lambda make=make, density=density, size=size: make(density, size, chains, draws), 2.0))
    for work, (density, g, _) in SURFACES.items():
        where = {"space": bm.SO3()} if density is fisher else {"space": bm.Euclidean(3), "constraint": g}
        mine = lambda density=density, where=where: ours(log_density=density, chains=chains, draws=draws, **where)
        rows.append((work, "mici", mine, lambda work=work: mici_chain(work, 10 * draws), 5.0))
    found: dict[str, Any] = {"machine": f"{processor()}, {cores()} cores", "python": platform.python_version(), "date": time.strftime("%Y-%m-%d")}
    found["samplers"] = []
    print(f"{'density':28} {'peer':16} {'ours ESS/s':>12} {'peer ESS/s':>12} {'ratio':>8}   goal")
    for work, peer, mine, theirs, goal in rows:
        if asked.only not in work:
            continue
        if find_spec(peer.split()[0].lower()) is None:
            print(f"{work:28} {peer:16} missing")
            found["samplers"].append(
                {"work": work, "peer": peer, "ours": None, "theirs": None, "ratio": None, "wanted": goal, "missing": "no module"}
            )
            continue
        a, b = mine(), theirs()
        pairs = [(a(), b()) for _ in range(rounds)]
        one, other = np.median(pairs, 0)
        ratio = one / other
        found["samplers"].append({"work": work, "peer": peer, "ours": one, "theirs": other, "ratio": ratio, "wanted": goal, "missing": None})
        print(f"{work:28} {peer:16} {one:12.0f} {other:12.0f} {ratio:8.1f}   ≥ {goal:g}{'' if ratio >= goal else '  short'}", flush=True)
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
