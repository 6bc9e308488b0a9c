"""Ballistic pendulum: a sliding disk in a pendulum potential, touched by heat in one direction only.

    L = v²/2 + σω²/2 − a(1 − cos x),    γ = α(x + θ),    F = −c(v + ω)(1, 1),    kT = α²/2c

The disk slides (x) and turns (θ); friction and noise act only on the velocity v + ω of the point of contact. The bath has rank one, and yet both
momenta come to the same temperature. Long ballistic flights occur when the contact point is nearly at rest.
"""

import jax.numpy as jnp
import numpy as np

from bismut.drawing import Drawing, Part, about_third, in_space
from bismut.ensembles import simulate
from bismut.findings.structure import volume_factor
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.mechanics import System, mechanical
from bismut.programs.evaluation import evaluate
from bismut.spaces import Euclidean


def ballistic_pendulum(sigma: float = 0.5, friction: float = 0.1, temperature: float = 0.5, depth: float = 1.0) -> System:
    """The sliding disk at a uniform temperature kT; `friction` is c, `sigma` the moment of inertia and `depth` a."""
    contact = jnp.array([1.0, 1.0])
    return mechanical(
        Euclidean(2),
        mass=[1.0, sigma],
        potential=lambda q, parameters: parameters["depth"] * (1 - jnp.cos(q[0])),
        noise=lambda q, parameters: jnp.array([jnp.sqrt(2 * parameters["friction"] * parameters["temperature"]) * (q @ contact)]),
        force=lambda q, v, parameters: -parameters["friction"] * (v @ contact) * contact,
        parameters={"friction": friction, "temperature": temperature, "depth": depth},
    )


def equilibrium_points(temperature: float, trajectories: int, seed: int) -> np.ndarray:
    """Positions from exp(−U/kT), a von Mises law in x; θ is free."""
    x = np.random.default_rng(seed).vonmises(0.0, 1 / temperature, trajectories)
    return np.stack([x, np.zeros(trajectories)], axis=1)


def _hottest(trial: Trial) -> float:
    """The temperature that is further from kT = ½, of the two, over kT."""
    start = trial.scheme.start(equilibrium_points(0.5, 4000, 1), temperature=0.5)
    run = simulate(
        trial.scheme,
        start,
        step=0.05,
        steps=200,
        trajectories=4000,
        seed=11,
        observe={"temperatures": lambda s: s.p**2 / jnp.array([0.5, 0.25])},
        every=20,
        progress=False,
    )
    means = run["temperatures"].mean.values.mean(0)
    return float(means[np.argmax(np.abs(means - 1))])


def _volume(trial: Trial) -> float:
    return float(evaluate(lambda state: volume_factor(trial.scheme, state, 0.1, jnp.array([0.3]), 0.0), trial.state))


def picture(system: System, q) -> Drawing:
    """A disk that slides and turns, with a spot on its rim."""
    q = np.asarray(q)
    parts = [Part("rod", (0.5, 0.5, 0.08)), Part("ball", 0.09, at=(0.38, 0.0, 0.08), colour="ink")]
    return Drawing(in_space(q[:, None, :1]), about_third(q[:, None, 1]), parts, flat=True)


ENTRY = Entry(
    "ballistic-pendulum",
    __doc__,
    ballistic_pendulum,
    start=lambda scheme: scheme.start(np.zeros(2), temperature=float(scheme.system.parameters["temperature"])),
    step=0.05,
    facts=(
        Fact("one step of 0.1 multiplies phase volume by 1 − h c (1 + 1/σ)", _volume, 0.97, 1e-13),
        # The relative spread of p² is √2; eleven records of 4000 trajectories: 4 standard errors, and the bias of explicit friction, below 0.5 %.
        Fact("both momenta stay at kT, through a bath of rank one (4000 trajectories, t up to 10)", _hottest, 1.0, 0.05),
    ),
    picture=picture,
)
