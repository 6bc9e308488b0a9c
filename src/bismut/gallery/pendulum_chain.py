"""Chain of N pendulums: point masses joined by rigid links, hanging from a fixed point.

    L = Σ ½ m |v_i|² − Σ m g x_i3,      |x_i − x_{i−1}|² = l²,   x_0 = 0,      γ_i = s x_i3

The multiplicative tangle of a chain in Cartesian coordinates, where everything is simple but the constraints: each touches two neighbours, so the
multipliers of a step are found from a banded system, at a cost proportional to N. Random vertical kicks on every mass leave the vertical angular
momentum alone. N = 1 is the spherical pendulum, N = 2 a double pendulum, chaotic even without noise.
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import Verlet
from bismut.body_loops import Bonds, Pair, pairs
from bismut.drawing import SPACE, Drawing, Line, Part
from bismut.gallery.entry import Entry, Fact
from bismut.gallery.measures import largest
from bismut.mechanics import Scheme, State, System, left_rotation, mechanical
from bismut.spaces import Euclidean


def pendulum_chain(links: int = 3, mass: float = 1.0, length: float = 1.0, gravity: float = 1.0, noise: float = 0.2) -> System:
    """`links` masses on links of one `length`; every mass is kicked up and down with amplitude s = `noise`."""

    joined = Bonds(np.arange(links - 1), np.arange(1, links))

    def constraint(x, parameters):
        squares = pairs(lambda a, b, _: Pair(own=(b - a) @ (b - a)), x, bonds=joined).own
        return jnp.concatenate([x[:1, :] @ x[0], squares]) - parameters["length"] ** 2

    return mechanical(
        Euclidean(3) ** links,
        mass=mass,
        potential=lambda x, parameters: mass * parameters["gravity"] * jnp.sum(x[:, 2]),
        noise=lambda x, parameters: parameters["noise"] * x[:, 2],
        constraint=constraint,
        symmetries={"vertical": left_rotation((0.0, 0.0, 1.0))},
        parameters={"gravity": gravity, "noise": noise, "length": length},
    )


def tilted(scheme: Scheme) -> State:
    """A straight chain, tilted and swung sideways."""
    count = scheme.system.constraints
    reach = np.asarray(scheme.system.parameters["length"]) * np.arange(1.0, count + 1)[:, None]
    start = scheme.start(reach * np.array([0.6, 0.0, -0.8]), velocity=reach * np.array([0.0, 0.3, 0.0]))
    assert isinstance(start, State)
    return start


def picture(system: System, x) -> Drawing:
    """Balls on rigid links, from the point they hang from; the path of the last."""
    links, length = np.shape(x)[1], float(system.parameters["length"])
    lines = [Line(np.arange(-1, links - 1), np.arange(links))]
    pivot = Part("block", 0.06 * length * np.ones(3), body=[SPACE])
    return Drawing(x, None, [Part("ball", 0.12 * length * np.ones(3)), pivot], lines, trails=[(links - 1, np.zeros(3))])


ENTRY = Entry(
    "pendulum-chain",
    __doc__,
    pendulum_chain,
    start=tilted,
    scheme=Verlet,
    step=0.02,
    facts=(Fact("links keep their lengths", lambda trial: largest(trial, lambda s: trial.system.constraint(s.q)), 0.0, 1e-12),),
    picture=picture,
)
