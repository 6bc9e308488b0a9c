"""A pendulum by three schemes: what they do to its energy, and at which step each of them fails.

python docs/live/pendulum.py      writes output/pendulum.html
"""

from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp

import bismut as bm

pendulum = bm.System(bm.Circle(), lambda q, v: 0.5 * v**2 + jnp.cos(q))
schemes = {"Verlet": bm.Verlet(pendulum), "Runge–Kutta 4": bm.RungeKutta4(pendulum), "Euler": bm.EulerMaruyama(pendulum)}
start = schemes["Verlet"].start(2.0, velocity=0.0)

page = bm.page(
    schemes,
    start,
    step=0.5,
    observe={"energy": bm.energy, "angle": lambda state: state.q},
    title="Three schemes",
    setup=Path(__file__).read_text(encoding="utf-8").partition("\npage = ")[0],
)

if __name__ == "__main__":
    print(page.save("output/pendulum.html"))
