"""Spacecraft with noisy reaction wheels.

    L = ½ w·Iw + ½ Σ_a j (w_a + dθ_a/dt)²,      γ_a = s θ_a,      F_θ = −c dθ/dt         on SO(3) × ℝ³

Three wheels turn the craft by reaction: the motor of wheel a acts between wheel and body, with friction in its bearing and a torque that is noisy.
The angle θ_a is the wheel's against the body, so the potential γ_a = s θ_a pushes both, in opposite directions: the noise is internal and the total
spatial angular momentum of craft and wheels is kept on every path. Noise of amplitude s on the torque feeds energy in at the rate ½ s² Σ_a (1/j +
1/I_a), which the friction takes out: it balances it at kT = s²/2c.
"""

import jax.numpy as jnp
import numpy as np

from bismut.drawing import Drawing, Part, about_third, towards
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import coin_mean
from bismut.mechanics import Scheme, State, System, symmetry
from bismut.mechanics.symmetry import Symmetry
from bismut.spaces import SO3, Euclidean


def spacecraft(inertia=(1.0, 1.5, 2.0), wheel: float = 0.1, noise: float = 0.05, friction: float = 0.02) -> System:
    """Moments of the craft with wheels locked out (`inertia`) and j = `wheel` of each wheel about its axis; s = `noise`, c = `friction`."""

    def lagrangian(q, v, parameters):
        w, spin = v
        return 0.5 * w @ (parameters["inertia"] * w) + 0.5 * parameters["wheel"] * (w + spin) @ (w + spin)

    return System(
        SO3() * Euclidean(3),
        lagrangian,
        noise=lambda q, parameters: parameters["noise"] * q[1],
        force=lambda q, v, parameters: (jnp.zeros_like(v[0]), -parameters["friction"] * v[1]),
        symmetries={"angular": _turns()},
        parameters={"inertia": np.asarray(inertia, float), "wheel": wheel, "noise": noise, "friction": friction},
    )


def _turns() -> Symmetry:
    """Turns of craft and wheels together: the angles of the wheels, against the body, do not change."""
    axes = np.eye(3)
    parts = [symmetry(lambda q, e=e: (q[0].T @ jnp.asarray(e, q[0].dtype), jnp.zeros_like(q[1]))).generators[0] for e in axes]
    return Symmetry(tuple(parts), "turns of craft and wheels about all axes", single=False)


def slewing(scheme: Scheme) -> State:
    """A slow tumble with one wheel spinning."""
    start = scheme.start((np.eye(3), np.zeros(3)), velocity=(np.array([0.1, -0.05, 0.2]), np.array([0.0, 0.0, 3.0])))
    assert isinstance(start, State)
    return start


def _heating(trial: Trial) -> float:
    """The rate at which noise without friction feeds energy in, over its formula; a small step, because the law is one of continuous time."""
    numbers = dict(trial.system.parameters) | {"friction": 0.0}
    scheme = trial.entry.scheme(trial.system.with_parameters(numbers))
    h = 1e-3
    gained = coin_mean(scheme, trial.state, h, scheme.system.energy) - float(scheme.system.energy(trial.state))
    return gained / h / (0.5 * 0.05**2 * (3 / 0.1 + np.sum(1 / np.array([1.0, 1.5, 2.0]))))


def picture(system: System, q) -> Drawing:
    """A craft with three wheels, one about each of its axes; body 0 is the craft, the others are the wheels."""
    R, angle = np.asarray(q[0]), np.asarray(q[1])
    wheels = np.einsum("fij,ajk,fakl->fail", R, towards(np.eye(3)), about_third(angle))
    places = np.einsum("fij,aj->fai", R, 0.75 * np.eye(3))
    x, turns = np.concatenate([np.zeros((len(R), 1, 3)), places], 1), np.concatenate([R[:, None], wheels], 1)
    spots = Part("ball", 0.06, body=[1, 2, 3], at=(0.28, 0.0, 0.05), colour="ink")
    return Drawing(x, turns, [Part("block", (0.5, 0.4, 0.3), body=[0]), Part("rod", (0.36, 0.36, 0.05), body=[1, 2, 3]), spots])


ENTRY = Entry(
    "spacecraft",
    __doc__,
    spacecraft,
    start=slewing,
    step=0.02,
    facts=(Fact("noise feeds energy in at the rate ½ s² Σ (1/j + 1/I_a) (ratio)", _heating, 1.0, 0.01),),
    picture=picture,
)
