"""Three frictions, one temperature: how soon a pendulum forgets its start, and where all of them arrive.

python docs/live/friction.py      writes output/friction.html
"""

from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp

import bismut as bm

pendulum = bm.mechanical(bm.Circle(), potential=lambda q: -jnp.cos(q))
schemes = {f"friction {c:g}": bm.Langevin(pendulum, temperature=0.5, friction=c) for c in (0.05, 0.5, 5.0)}
start = schemes["friction 0.5"].start(3.0, velocity=0.0)

page = bm.page(
    schemes,
    start,
    step=0.1,
    trajectories=500,
    seed=1,
    observe={"temperature": bm.temperature, "energy": bm.energy, "height": lambda state: -jnp.cos(state.q)},
    title="Friction",
    setup=Path(__file__).read_text(encoding="utf-8").partition("\npage = ")[0],
)

if __name__ == "__main__":
    print(page.save("output/friction.html"))
