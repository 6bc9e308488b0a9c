"""Figure 3 of the paper as a page that runs: symplectic against Euler–Maruyama, side by side on one Wiener path.

python docs/live/ballistic_pendulum.py      writes output/ballistic-pendulum.html
"""

from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
import bismut as bm
from bismut.gallery import entry
from bismut.gallery.ballistic_pendulum import equilibrium_points

model = entry("ballistic-pendulum")
system = model.system()
schemes = {"variational": bm.VariationalEuler(system), "explicit Euler–Maruyama": bm.EulerMaruyama(system)}
start = schemes["variational"].start(equilibrium_points(0.5, 1, 1)[0], temperature=0.5)

page = bm.page(
    schemes,
    start,
    step=0.1,
    trajectories=500,
    seed=1,
    observe={"kinetic energy": bm.kinetic_energy, "energy": bm.energy},
    picture=model.picture,
    title="Ballistic pendulum",
    setup=Path(__file__).read_text(encoding="utf-8").partition("\npage = ")[0],
)

if __name__ == "__main__":
    print(page.save("output/ballistic-pendulum.html"))
