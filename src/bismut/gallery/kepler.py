"""Kepler's problem with random kicks.

    L = |v|²/2 − (−μ/|q|),      γ₀ = s |q|  (radial),      γ₁, γ₂ = k q₁, k q₂  (a uniform random field)

A planet in the plane. Radial kicks are unchanged by rotations, so the angular momentum of every path is what it was, and with it Kepler's second
law, though neither energy nor the orbit is kept. A uniform random field breaks the symmetry: angular momentum then diffuses. Without noise the orbit
closes after T = 2π √(a³/μ) (third law).
"""

import jax
import jax.numpy as jnp
import numpy as np

from bismut.actions import Verlet
from bismut.drawing import SPACE, Drawing, Part, in_space
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.mechanics import State, System, left_rotation, mechanical
from bismut.spaces import Euclidean


def kepler(attraction: float = 1.0, radial: float = 0.1, field: float | None = None) -> System:
    """A unit mass attracted by μ = `attraction`, kicked radially (s = `radial`) and, unless None, by a uniform random field (k = `field`)."""

    def noise(q, parameters):
        kicks = [parameters["radial"] * jnp.sqrt(q @ q)[None]]
        return jnp.concatenate(kicks if field is None else [*kicks, parameters["field"] * q])

    return mechanical(
        Euclidean(2),
        potential=lambda q, parameters: -parameters["attraction"] / jnp.sqrt(q @ q),
        noise=noise,
        symmetries={"rotation": left_rotation(1.0)},
        parameters={"attraction": attraction, "radial": radial} | ({} if field is None else {"field": field}),
    )


def _period(trial: Trial) -> float:
    """How far a whole period without noise misses its start; semi-major axis 1, eccentricity ½."""
    from bismut.ensembles import trajectory

    quiet = Verlet(trial.system.with_parameters({"attraction": 1.0, "radial": 0.0}))
    start = quiet.start(jnp.array([0.5, 0.0]), velocity=jnp.array([0.0, 3.0**0.5]))
    assert isinstance(start, State)
    end = trajectory(quiet, start, step=2 * jnp.pi / 4000, steps=4000, every=4000).final
    return float(jnp.max(jnp.abs(jnp.concatenate(jax.tree.leaves((end.q - start.q, end.p - start.p))))))


def picture(system: System, q) -> Drawing:
    """A planet about its sun, and where it has been."""
    parts = [Part("ball", 0.06), Part("ball", 0.12, body=[SPACE], colour="ochre")]
    return Drawing(in_space(np.asarray(q)[:, None]), None, parts, trails=[(0, (0.0, 0.0, 0.0))], flat=True)


ENTRY = Entry(
    "kepler",
    __doc__,
    kepler,
    start=lambda scheme: scheme.start(np.array([1.0, 0.0]), velocity=np.array([0.0, 1.1])),
    scheme=Verlet,
    step=0.01,
    facts=(Fact("without noise an orbit of semi-major axis 1 closes after 2π (4000 steps)", _period, 0.0, 1e-3),),
    picture=picture,
)
