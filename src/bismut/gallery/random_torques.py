"""Rigid body under random torques about its own axes.

    L = ½ w·Iw,       dm = m × w dt + Σ s_i e_i ∘ dW_i,   m = Iw                        on SO(3)

Thrusters that misfire, or a tumbling grain hit by gas: torques whose axes turn with the body. Constant torques in the body are not the differential
of a function on SO(3), because left-invariant fields do not commute, so no stochastic potential gives them; they are random forces, and enter as
virtual work. Angular momentum J = R m in space does a random walk with steps R e_i s_i dW_i, and ⟨|J|²⟩ = |J₀|² + (s₁² + s₂² + s₃²) t whatever the
inertia. The variational Euler step has this growth exactly, at any step size: it kicks, and then moves freely, which keeps J.
"""

import jax.numpy as jnp
import numpy as np

from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import coin_mean, ensemble_mean
from bismut.mechanics import System, left_rotations, mechanical
from bismut.spaces import SO3


def random_torques(inertia=(1.0, 2.0, 3.3), noise=(0.3, 0.4, 0.5)) -> System:
    """A body with principal moments `inertia` and torques of strengths s_i = `noise` about its principal axes."""
    return mechanical(
        SO3(),
        mass=inertia,
        random_force=lambda R, w, parameters: jnp.diag(parameters["noise"]),
        symmetries={"angular": left_rotations()},
        parameters={"noise": jnp.asarray(noise, float)},
    )


def _square(state):
    return jnp.sum(state.p**2)  # |J|² = |R m|²


def _growth(trial: Trial) -> float:
    h = 0.3
    return (coin_mean(trial.scheme, trial.state, h, _square) - float(_square(trial.state))) / (
        h * float(jnp.sum(trial.system.parameters["noise"] ** 2))
    )


def _square_at(trial: Trial) -> float:
    return ensemble_mean(trial.scheme, trial.state, _square, step=0.2, steps=50, trajectories=4000)


ENTRY = Entry(
    "random-torques",
    __doc__,
    random_torques,
    start=lambda scheme: scheme.start(np.eye(3), velocity=np.array([0.1, 1.0, 0.1])),
    step=0.05,
    facts=(
        Fact("⟨|J|²⟩ grows by s₁² + s₂² + s₃² per unit time, exactly (ratio after one step, h = 0.3)", _growth, 1.0, 1e-13),
        # |J₀|² = 0.01 + 4 + 0.1089; one standard deviation of the mean of 4000 is 0.11.
        Fact("⟨|J|²⟩ = |J₀|² + 0.5 t at t = 10, with h = 0.2 (4000 trajectories, five standard deviations)", _square_at, 4.1189 + 5.0, 0.55),
    ),
    kept=(),
)
