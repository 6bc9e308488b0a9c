"""Heavy top, reduced: body momentum and the vertical seen from the body, with noise on both.

    H = ½ μ·I⁻¹μ + w χ·a,        H_i = s_i a_i + r_i μ_i,        dμ = μ × ∂H/∂μ dt + a × ∂H/∂a dt + ...,   da = a × ∂H/∂μ dt + ...      on so(3)* ⋉ ℝ³

Gravity breaks the symmetry of space, and what is left of it is remembered by the vertical a = Rᵀe₃, which the group advects. Noise shakes the support
(s_i, random gravity along the axes of the body) and turns the frame (r_i). Every path keeps |a|² and μ·a, the angular momentum about the vertical,
for they are Casimirs of the bracket (Arnaudon, De Castro and Holm, J. Nonlinear Sci. 28, 91 (2018)). A step is the coadjoint action of one
rotation, and it is, path by path, the step of the whole top on T*SO(3).
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import HamiltonianMidpoint
from bismut.drawing import SPACE, Drawing, Part, towards
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import spread, step
from bismut.mechanics import LiePoisson, State, System
from bismut.spaces import SO3


def heavy_top_reduced(inertia=(1.0, 1.0, 0.5), weight: float = 1.0, axis=(0.0, 0.0, 1.0), shaking: float = 0.3, turning: float = 0.1) -> System:
    """A top with principal moments `inertia` and its weight w at `axis` χ; noises s = `shaking` on gravity and r = `turning` on the frame."""
    return LiePoisson(
        SO3(),
        lambda mu, a, parameters: 0.5 * mu @ (mu / parameters["inertia"]) + parameters["weight"] * (parameters["axis"] @ a),
        noise=lambda mu, a, parameters: parameters["shaking"] * a + parameters["turning"] * mu,
        advected=1,
        parameters={"inertia": jnp.asarray(inertia), "weight": weight, "axis": jnp.asarray(axis), "shaking": shaking, "turning": turning},
    )


def unreduced(system: System) -> System:
    """The same top with its attitude, on T*SO(3): a is Rᵀe₃."""
    vertical = lambda R: R[2]
    return System(
        SO3(),
        hamiltonian=lambda R, m: system.hamiltonian(vertical(R), m),
        noise_hamiltonian=lambda R, m: system.noise_hamiltonian(vertical(R), m),
    )


def _same_as_unreduced(trial: Trial) -> float:
    """A step of the whole top, pushed down, less the step of the reduced one."""
    R, mu = SO3().from_rotation_vector(jnp.array([0.5, -1.0, 0.8])), trial.state.p
    dW = jnp.array([0.3, -0.2, 0.4])
    up = step(HamiltonianMidpoint(unreduced(trial.system)), State(R, mu), 0.1, dW)
    down = step(trial.scheme, State(R[2], mu), 0.1, dW)
    return float(jnp.max(jnp.abs(jnp.concatenate([up.q[2] - down.q, up.p - down.p]))))


def picture(system: System, states) -> Drawing:
    """The sphere of directions in the body: the vertical a as it wanders there, and the axis on which the weight sits."""
    a = np.asarray(states[0], float)
    axis = np.asarray(system.parameters["axis"], float)
    weight = Part("arrow", (0.05, 0.05, 0.6), body=[SPACE], turn=towards(axis), colour="ink")
    ball = Part("ball", 0.96, body=[SPACE], colour="rule")
    return Drawing(a[:, None], None, [Part("ball", 0.06), ball, weight], trails=[(0, (0.0, 0.0, 0.0))])


ENTRY = Entry(
    "heavy-top-reduced",
    __doc__,
    heavy_top_reduced,
    start=lambda scheme: scheme.start(np.array([0.6, 0.0, 0.8]), momentum=np.array([0.2, -0.3, 1.5])),
    scheme=HamiltonianMidpoint,
    step=0.05,
    facts=(
        Fact("μ·a and |a|² stay, whatever the noise", lambda trial: spread(trial, lambda s: jnp.stack([s.p @ s.q, s.q @ s.q])), 0.0, 1e-12),
        Fact("a step is that of the whole top on T*SO(3), pushed down", _same_as_unreduced, 0.0, 1e-13),
    ),
    picture=picture,
)
