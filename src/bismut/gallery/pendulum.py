"""Pendulum with multiplicative noise, in a bath that its own noise makes.

    L = v²/2 + a cos q,      γ = s sin q,      Γ(q) = (s²/2kT) cos² q          on the circle

A horizontal random field shakes the bob: the noise is strongest when the pendulum hangs and vanishes when it is horizontal. Friction balances it at
every q, so that exp(−H/kT) is invariant although the bath depends on position and is degenerate at q = ±π/2. In equilibrium
⟨cos q⟩ = I₁(a/kT)/I₀(a/kT). Without the friction the same noise pumps energy in and every step is symplectic.
"""

import jax.numpy as jnp
import numpy as np

from bismut.drawing import SPACE, Drawing, Line, Part
from bismut.flows import Langevin
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import ensemble_mean
from bismut.mechanics import Scheme, System, mechanical
from bismut.spaces import Circle


def pendulum(stiffness: float = 1.0, noise: float = 1.0, temperature: float = 0.5) -> System:
    """Unit mass and length, U = −`stiffness` cos q, γ = `noise` sin q; `temperature` is the kT of the bath."""
    return mechanical(
        Circle(),
        potential=lambda q, parameters: -parameters["stiffness"] * jnp.cos(q),
        noise=lambda q, parameters: jnp.array([parameters["noise"] * jnp.sin(q)]),
        parameters={"stiffness": stiffness, "noise": noise, "temperature": temperature},
    )


def in_its_bath(system: System) -> Scheme:
    """Langevin dynamics whose bath is the system's own noise, at the temperature of its parameters."""
    return Langevin(system, temperature=lambda parameters: parameters["temperature"])


def _mean_cosine(trial: Trial) -> float:
    points = np.random.default_rng(3).vonmises(0.0, 2.0, 4000)  # exp(−U/kT) with a/kT = 2
    start = trial.scheme.start(np.asarray(points), temperature=0.5)
    return ensemble_mean(trial.scheme, start, lambda s: jnp.cos(s.q), step=0.1, steps=200, trajectories=4000, records=10)


def picture(system: System, q) -> Drawing:
    """A bob on a rod in the plane."""
    bob = np.stack([np.sin(q), -np.cos(q), np.zeros_like(q)], -1)[:, None]
    return Drawing(bob, None, [Part("ball", 0.12), Part("block", 0.05, body=[SPACE])], [Line(SPACE, 0)], flat=True)


ENTRY = Entry(
    "pendulum",
    __doc__,
    pendulum,
    start=lambda scheme: scheme.start(np.asarray(0.5), temperature=float(scheme.system.parameters["temperature"])),
    scheme=in_its_bath,
    step=0.05,
    facts=(
        # The spread of cos q is 0.36; ten records of 4000 trajectories, less than half of them independent: 4 standard errors.
        Fact("⟨cos q⟩ = I₁(2)/I₀(2) stays in equilibrium (kT = a/2, 4000 trajectories, t up to 20)", _mean_cosine, 0.697775, 0.012),
    ),
    picture=picture,
)
