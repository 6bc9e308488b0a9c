"""jax-md: `simulate.nvt_langevin` on rigid bodies. Bodies do not see each other, so each is an independent copy."""

from __future__ import annotations

from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np

from bismut.findings import peers

_COPIES, _LOOKS = 4000, 60


def bodies() -> peers.Judged:
    from jax_md import rigid_body, simulate, space  # pyright: ignore[reportMissingImports]

    _, shift = space.free()

    energy = lambda body, **_: 0.5 * jnp.sum(body.center**2)
    friction = rigid_body.RigidBody(peers.FRICTION, peers.FRICTION)
    init, step = simulate.nvt_langevin(energy, shift, peers.BODY_STEP, peers.KT, gamma=friction, center_velocity=False)
    orientation = rigid_body.Quaternion(jnp.tile(jnp.array([1.0, 0.0, 0.0, 0.0]), (_COPIES, 1)))
    inertia = jnp.tile(jnp.array(peers.INERTIA), (_COPIES, 1))
    mass = rigid_body.RigidBody(jnp.ones(_COPIES), inertia)
    state = init(jax.random.key(1), rigid_body.RigidBody(jnp.zeros((_COPIES, 3)), orientation), mass=mass)
    apart = round(1 / peers.BODY_STEP)
    advance = jax.jit(lambda state: jax.lax.fori_loop(0, apart, lambda _, s: step(s), state))

    @jax.jit
    def axes(state):
        turning = jax.vmap(rigid_body.conjugate_momentum_to_angular_momentum)(state.position.orientation, state.momentum.orientation)
        return jnp.concatenate([state.momentum.center**2, turning**2 / inertia], 1) / peers.KT

    looks = []
    for look in range(8 + _LOOKS):
        state = advance(state)
        if look >= 8:
            looks.append(np.asarray(axes(state)))
    return peers.Judged(f"jax-md {version('jax-md')}, nvt_langevin", peers.BODY_AXES, peers.BODY_STEP, np.stack(looks))
