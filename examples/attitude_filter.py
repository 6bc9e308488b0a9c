"""The attitude of a spacecraft from a gyroscope and two directions, by particles that a kernel on SO(3) moves.

    R' = R ⊕ ω dt ⊕ w,   w ~ N(0, σ²);        y = Rᵀ r + v,   r the sun, then the magnetic field,   v ~ N(0, s²)

Particles follow the gyroscope, are weighed by the measurement and drawn anew; then each is moved by a Metropolised trajectory that leaves its own law
p(R | where it came from) p(y | R) as it is. On SO(3) w has the density exp(−|w|²/2σ²) (1 + |w|²/4)² with respect to Haar's measure.
"""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np

import bismut as bm

particles, times, dt, sigma, s = (64, 4, 0.1, 0.05, 0.05) if "--smoke" in sys.argv else (1000, 60, 0.1, 0.05, 0.05)
space, rate, sights = bm.SO3(), jnp.array([0.4, -0.2, 0.7]), jnp.eye(3)[:2]
likelihood = lambda R, y: -0.5 * jnp.sum((y - sights @ R) ** 2) / s**2  # rows of `sights @ R` are Rᵀ r
density = lambda w: -0.5 * w @ w / sigma**2 + 2 * jnp.log1p(w @ w / 4)


def update(R, data):
    key, y = data
    spread, weigh, move = jax.random.split(key, 3)
    expected = jax.vmap(lambda R: space.move(R, dt * rate))(R)
    R = jax.vmap(space.move)(expected, sigma * jax.random.normal(spread, (particles, 3)))
    chosen = jax.random.categorical(weigh, jax.vmap(likelihood, (0, None))(R, y), shape=(particles,))

    def moved(key, R, expected):
        kernel = bm.malt(space, lambda R: density(space.subtract(R, expected)) + likelihood(R, y), step=0.03, leapfrogs=3)
        return kernel.step(key, kernel.init(R))[0].position

    R = jax.vmap(moved)(jax.random.split(move, particles), R[chosen], expected[chosen])
    u, _, v = jnp.linalg.svd(R.mean(0))  # the mean rotation
    return R, u @ v


rng, true = np.random.default_rng(1), [jnp.eye(3)]
for _ in range(times):
    true.append(space.move(space.move(true[-1], dt * rate), sigma * rng.normal(size=3)))
seen = jnp.stack([sights @ R + s * rng.normal(size=(2, 3)) for R in true[1:]])
start = jnp.broadcast_to(jnp.eye(3), (particles, 3, 3))
_, means = jax.jit(lambda: jax.lax.scan(update, start, (jax.random.split(jax.random.key(0), times), seen)))()
errors = [np.rad2deg(np.arccos(np.clip((np.sum(A * B) - 1) / 2, -1, 1))) for A, B in zip(means, true[1:], strict=True)]
steady = [(np.sqrt(1 + 4 * s**2 / sigma**2 / k) - 1) * sigma**2 / 2 for k in (1, 1, 2)]  # 1/P = 1/(P + σ²) + k/s², an axis across k sights
print(f"typical error of the filter {np.sqrt(np.mean(np.square(errors))):.2f}°, of a linear one {np.rad2deg(np.sqrt(sum(steady))):.2f}°")
