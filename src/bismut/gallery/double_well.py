"""Double well: a particle that heat carries over a barrier.

    L = v²/2 − b (q² − 1)²,      γ = s q,      Γ = s²/2kT

The standard model of a rare event: between the wells at q = ±1 stands a barrier of height b, crossed at a rate proportional to exp(−b/kT) (Kramers,
Physica 7, 284 (1940)). In equilibrium positions follow exp(−b(q² − 1)²/kT), so that ⟨q²⟩ is a ratio of two integrals.
"""

import jax.numpy as jnp
import numpy as np

from bismut.drawing import SPACE, Drawing, Line, Part
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import ensemble_mean
from bismut.gallery.pendulum import in_its_bath
from bismut.mechanics import System, mechanical
from bismut.spaces import Euclidean


def double_well(barrier: float = 1.0, noise: float = 1.0, temperature: float = 0.5) -> System:
    """Unit mass, a barrier of height b = `barrier` between wells at ±1, white noise s = `noise`, kT = `temperature`."""
    return mechanical(
        Euclidean(1),
        potential=lambda q, parameters: parameters["barrier"] * jnp.sum((q**2 - 1) ** 2),
        noise=lambda q, parameters: parameters["noise"] * q,
        parameters={"barrier": barrier, "noise": noise, "temperature": temperature},
    )


def equilibrium(barrier: float, temperature: float, trajectories: int, seed: int = 0) -> tuple[np.ndarray, float]:
    """Positions from exp(−U/kT) by inversion of its distribution function, and ⟨q²⟩ by quadrature."""
    q = np.linspace(-4, 4, 8001)
    density = np.exp(-barrier * (q**2 - 1) ** 2 / temperature)
    distribution = np.cumsum(density) / density.sum()
    points = np.interp(np.random.default_rng(seed).uniform(size=trajectories), distribution, q)
    return points[:, None], float(density @ q**2 / density.sum())


def _second_moment(trial: Trial) -> float:
    points, expected = equilibrium(1.0, 0.5, 4000)
    start = trial.scheme.start(points, temperature=0.5)
    measured = ensemble_mean(trial.scheme, start, lambda s: s.q[0] ** 2, step=0.05, steps=400, trajectories=4000, records=10)
    return measured / expected


def picture(system: System, q) -> Drawing:
    """A particle on the curve of its energy."""
    height = lambda x: float(system.parameters["barrier"]) * (x**2 - 1) ** 2
    place = lambda x: np.stack([x, height(x), np.zeros_like(x)], -1)
    reach = max(1.5, float(np.nanmax(np.abs(q), initial=0.0)))
    curve = place(np.linspace(-reach, reach, 81))
    ground = Line(np.full(80, SPACE), np.full(80, SPACE), curve[:-1], curve[1:])
    return Drawing(place(np.asarray(q)), None, [Part("ball", 0.1)], [ground], flat=True)


ENTRY = Entry(
    "double-well",
    __doc__,
    double_well,
    start=lambda scheme: scheme.start(np.array([-1.0]), temperature=float(scheme.system.parameters["temperature"])),
    scheme=in_its_bath,
    step=0.05,
    facts=(
        # The relative spread of q² is 0.45: 4 standard errors with ten records of 4000 trajectories, few of them independent.
        Fact("⟨q²⟩ over its Gibbs average stays 1 (kT = b/2, 4000 trajectories, t up to 20)", _second_moment, 1.0, 0.02),
    ),
    picture=picture,
)
