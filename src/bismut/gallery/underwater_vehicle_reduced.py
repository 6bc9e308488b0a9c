"""Underwater vehicle in reduced form, with stochastic Lie–Poisson noise.

    dm = ad*_ξ m dt + Σ_i ad*_{σ_i} m ∘ dW_i,       m = (Π, P) ∈ se(3)*,    ξ = (J⁻¹Π, M⁻¹P)

Kirchhoff's equations for the momenta alone. The noise carries the body about: g⁻¹ dg = ξ dt + Σ σ_i ∘ dW_i with fixed twists σ_i, as a fluid at
random motion would. The action of a step then sees the velocity without the carrying, in one scalar,

    S_d(g0, g1) = h l(v − Σ σ_i ΔW_i / h),        v = (g1 ⊖ g0)/h ,

which does not depend on where the vehicle is; the reduced step follows from it by symmetry (`Reduced`). Noise moves m within its coadjoint orbit:
|P|² and Π·P are kept on every path while the energy wanders (Holm, Proc. R. Soc. A 471 (2015); Arnaudon, De Castro and Holm, J. Nonlinear Sci. 28,
91 (2018)).
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import Discrete
from bismut.flows import Reduced
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import spread, step
from bismut.gallery.underwater_vehicle import casimirs, ellipsoid, start
from bismut.mechanics import Scheme, State, System
from bismut.spaces import SE3, SO3


def underwater_vehicle_reduced(axes=(3.0, 2.0, 1.0), mass: float = 1.0, noise: float = 0.1) -> System:
    """The ellipsoid `axes` carried about at random: six twists along and about its axes, each of amplitude `noise`."""
    return System(
        SE3(),
        lambda g, v, parameters: 0.5 * v @ (parameters["inertia"] * v),
        channels=6,
        parameters={"inertia": np.concatenate(ellipsoid(axes, mass)), "noise": noise},
    )


def carried(system: System) -> Discrete:
    """The scalar S_d = h l(v − Σ σ_i ΔW_i/h) on SE(3)."""
    space = system.space

    def S_d(q0, q1, h, dW, parameters):
        v = (space.subtract(q1, q0) - parameters["noise"] * dW) / h
        return h * 0.5 * v @ (parameters["inertia"] * v)

    return Discrete(space, S_d, system=system)


def reduced(system: System) -> Scheme:
    """The momentum of `carried`."""
    return Reduced(carried(system))


def _same_as_unreduced(trial: Trial) -> float:
    """The momentum after one step of the whole vehicle from somewhere else, minus that of the reduced step."""
    unreduced = carried(trial.system)
    somewhere = SO3().from_rotation_vector(jnp.array([0.5, -1.0, 0.8])), jnp.array([2.0, -1.0, 0.5])
    dW = 0.3 * jnp.arange(1.0, 7.0)
    a, b = step(unreduced, State(somewhere, trial.state.p), 0.05, dW), step(trial.scheme, trial.state, 0.05, dW)
    return float(jnp.max(jnp.abs(a.p - b.p)))


ENTRY = Entry(
    "underwater-vehicle-reduced",
    __doc__,
    underwater_vehicle_reduced,
    start=start,
    scheme=reduced,
    step=0.025,
    facts=(
        Fact("|P|² and Π·P are kept under the noise", lambda trial: spread(trial, lambda state: casimirs(state.p))),
        Fact("the reduced step is the whole step, wherever that begins", _same_as_unreduced, 0.0, 1e-12),
    ),
)
