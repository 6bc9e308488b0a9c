"""Free rigid body, reduced: body momentum alone, with stochastic Lie–Poisson noise.

    dμ = μ × ∇H dt + Σ_i μ × s_i e_i ∘ dW_i,        H = ½ μ·I⁻¹μ,   H_i = s_i μ_i                     on so(3)*

Euler's equations after reduction by rotations, in a frame that is turned at random: every noise turns μ, so μ stays on the sphere |μ| = const for
every path, while the energy wanders over what that sphere allows (Arnaudon, De Castro and Holm, J. Nonlinear Sci. 28, 91 (2018)). A step is the
coadjoint action of one rotation, found from the reduced discrete action. It is, path by path, the step of the whole body on T*SO(3) with its attitude
forgotten. With s = 0 it is Euler's top.
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import HamiltonianMidpoint
from bismut.drawing import SPACE, Drawing, Part
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import spread, step
from bismut.mechanics import LiePoisson, State, System
from bismut.spaces import SO3


def rigid_body_reduced(inertia=(1.0, 2.0, 3.3), noise=(0.2, 0.2, 0.2)) -> System:
    """A body with principal moments `inertia`, turned about its axes by noises s = `noise`."""
    return LiePoisson(
        SO3(),
        lambda mu, parameters: 0.5 * mu @ (mu / parameters["inertia"]),
        noise=lambda mu, parameters: parameters["noise"] * mu,
        parameters={"inertia": jnp.asarray(inertia), "noise": jnp.asarray(noise)},
    )


def unreduced(inertia=(1.0, 2.0, 3.3), noise=(0.2, 0.2, 0.2)) -> System:
    """The same body with its attitude, on T*SO(3)."""
    moments, strength = jnp.asarray(inertia), jnp.asarray(noise)
    return System(SO3(), hamiltonian=lambda R, m: 0.5 * m @ (m / moments), noise_hamiltonian=lambda R, m: strength * m)


def _same_as_unreduced(trial: Trial) -> float:
    there, dW = SO3().from_rotation_vector(jnp.array([0.5, -1.0, 0.8])), jnp.array([0.3, -0.2, 0.4])
    a = step(HamiltonianMidpoint(unreduced()), State(there, trial.state.p), 0.1, dW)
    return float(jnp.max(jnp.abs(a.p - step(trial.scheme, trial.state, 0.1, dW).p)))


def picture(system: System, states) -> Drawing:
    """The sphere of momenta in the body: μ upon it, and the line where it has been."""
    mu = np.asarray(states[1], float)
    size = np.linalg.norm(mu[0])
    ball = Part("ball", 0.97 * size, body=[SPACE], colour="rule")
    return Drawing(mu[:, None], None, [Part("ball", 0.05 * size), ball], trails=[(0, (0.0, 0.0, 0.0))])


ENTRY = Entry(
    "rigid-body-reduced",
    __doc__,
    rigid_body_reduced,
    start=lambda scheme: scheme.start(momentum=np.array([0.1, 2.0, 0.33])),
    scheme=HamiltonianMidpoint,
    step=0.05,
    facts=(
        Fact("|μ|² stays, whatever the noise", lambda trial: spread(trial, lambda state: state.p @ state.p), 0.0, 1e-12),
        Fact("a step is that of the whole body, with its attitude forgotten", _same_as_unreduced, 0.0, 1e-13),
    ),
    picture=picture,
)
