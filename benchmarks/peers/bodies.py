"""Rigid bodies by jax-md."""

from benchmarks.peers.by_hand import N, compiled
from benchmarks.timing import Ready

INERTIA = (1.0, 2.0, 2.5)


def jax_md() -> Ready:
    """nvt_langevin on rigid bodies in a trap and a field."""
    import jax
    import jax.numpy as jnp
    from jax_md import rigid_body, simulate, space

    steps = 100
    _, shift = space.free()

    def energy(body, **_):
        turned = jax.vmap(rigid_body.quaternion_rotate, (0, None))(body.orientation, jnp.array([0.0, 0.0, 1.0]))
        return 0.5 * jnp.sum(body.center**2) + jnp.sum(turned[:, 2])

    init, step = simulate.nvt_langevin(energy, shift, 0.02, 1.0, gamma=rigid_body.RigidBody(1.0, 1.0), center_velocity=False)
    orientation = rigid_body.Quaternion(jnp.tile(jnp.array([1.0, 0.0, 0.0, 0.0]), (N, 1)))
    body = rigid_body.RigidBody(jnp.zeros((N, 3)), orientation)
    mass = rigid_body.RigidBody(jnp.ones(N), jnp.tile(jnp.array(INERTIA), (N, 1)))
    state = init(jax.random.key(0), body, mass=mass)
    run = jax.jit(lambda state: jax.lax.fori_loop(0, steps, lambda _, s: step(s), state))
    return compiled(run, state, N * steps, lambda s: s.momentum.center)


CONTESTANTS = {"jax-md": jax_md}
