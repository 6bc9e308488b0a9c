"""A bead in a bowl that trembles, and is pushed as far as its slider says: which noise keeps the angular momentum.

python docs/live/bowl.py      writes output/bowl.html
"""

from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp

import bismut as bm

bowl = bm.mechanical(
    bm.Euclidean(2),
    potential=lambda q: 0.5 * q @ q,
    noise=lambda q, parameters: jnp.array([parameters["tremble"] * 0.5 * q @ q, parameters["shake"] * q[0]]),
    symmetries={"rotation": bm.left_rotation(1.0)},
    parameters={"tremble": 0.3, "shake": 0.0},
)
scheme = bm.Verlet(bowl)
start = scheme.start(jnp.array([1.0, 0.0]), velocity=jnp.array([0.0, 0.5]))

page = bm.page(
    scheme,
    start,
    step=0.05,
    trajectories=100,
    seed=1,
    controls={"tremble": (0, 1), "shake": (0, 1)},
    title="A bead in a bowl",
    setup=Path(__file__).read_text(encoding="utf-8").partition("\npage = ")[0],
)

if __name__ == "__main__":
    print(page.save("output/bowl.html"))
