"""A heavy top shaken by random vertical fields: declare, discretise, run, verify."""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp

import bismut as bm

smoke = "--smoke" in sys.argv
inertia = jnp.array([1.0, 2.0, 3.0])
top = bm.System(  # 1 declare
    space=bm.SO3(),
    lagrangian=lambda R, w: 0.5 * w @ (inertia * w) - 3.0 * R[2, 2],
    noise=lambda R: jnp.array([0.5 * R[2, 2], 0.3 * R[2, 2] ** 2]),  # γ_i(q): one value per Wiener process
    symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))},
)
scheme = bm.VariationalEuler(top)  # 2 discretise
start = scheme.start(jnp.eye(3), velocity=jnp.array([0.3, 0.2, 1.0]))
result = bm.simulate(  # 3 run
    scheme,
    start,
    step=0.01,
    steps=100 if smoke else 1_000,
    trajectories=20 if smoke else 1_000,
    seed=7,
    observe={"energy": bm.energy, "J": bm.momentum("vertical")},
)
print(result)
print("spread of J over all trajectories:", float(result.J.max[-1] - result.J.min[-1]))
if not smoke:
    print(bm.verify(scheme, start, step=0.01))  # 4 verify
