"""A chain of rigid links in a bath: lengths stay to round-off, and heat is shared out over the directions that the links leave free."""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp

import bismut as bm

smoke = "--smoke" in sys.argv
links, kT = 8, 0.7
along = lambda x: x - jnp.concatenate([jnp.zeros((1, 3)), x[:-1]])  # from each bead to the next; the first hangs from the origin
chain = bm.mechanical(
    bm.Euclidean(3) ** links,
    potential=lambda x: jnp.sum(x[:, 2]),  # gravity
    constraint=lambda x: jnp.sum(along(x) ** 2, -1) - 1.0,  # every link has length 1
)
scheme = bm.Langevin(chain, temperature=kT, rate=1.0, splitting=bm.GLA(bm.Verlet))
hanging = jnp.arange(1.0, links + 1)[:, None] * jnp.array([0.0, 0.0, -1.0])
result = bm.simulate(
    scheme,
    scheme.start(hanging, velocity=jnp.zeros((links, 3))),  # cold and straight
    step=0.05,
    steps=20 if smoke else 4_000,
    burn_in=0 if smoke else 1_000,
    trajectories=16 if smoke else 200,
    seed=5,
    observe={
        "temperature": bm.time_average(bm.temperature),
        "length": bm.extremes(lambda state: jnp.linalg.norm(along(state.q), axis=-1)),
        "hanging": bm.time_average(lambda state: -along(state.q)[:, 2]),
    },
)
off = max(abs(float(result.length.min.min()) - 1), abs(float(result.length.max.max()) - 1))
print(f"temperature   {float(result.temperature.mean):.4f} ± {float(result.temperature.stderr):.4f}, bath {kT}")
print(f"lengths       off by at most {off:.0e}")
print("each link hangs, on average and from the top, by", " ".join(f"{value:.3f}" for value in result.hanging.mean.values))
