"""Underwater vehicle: an ellipsoid in an ideal fluid at rest.

    L = ½ Ω·JΩ + ½ V·MV       on SE(3),            dΠ/dt = Π×Ω + P×V,   dP/dt = P×Ω,      Π = JΩ,   P = MV

Kirchhoff's equations. The fluid that the body pushes aside adds to its mass and inertia, differently along each axis: Lamb's integrals

    α_i = abc ∫₀^∞ dλ / ((a_i² + λ) √((a²+λ)(b²+λ)(c²+λ))),      M_i = m · 2/(2 − α_i)

for a neutrally buoyant ellipsoid of mass m with semi-axes a, b, c (Lamb, Hydrodynamics, articles 114 and 115). Nothing depends on where the vehicle
is: spatial momentum and angular momentum are kept, and so are |P|² and Π·P, which label the orbits on which the reduced motion lives; between them
lie regular islands and a chaotic sea (Aref and Jones, Phys. Fluids A 5, 3026 (1993); Bou-Rabee and Marsden, Found. Comput. Math. 9, 197 (2009)).
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.drawing import Drawing, Part
from bismut.errors import DomainError
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import spread
from bismut.mechanics import State, System, left_rotations, translations
from bismut.programs.evaluation import evaluate
from bismut.spaces import SE3


def underwater_vehicle(axes=(3.0, 2.0, 1.0), mass: float = 1.0) -> System:
    """A neutrally buoyant ellipsoid with semi-axes `axes`; velocities are (Ω, V), momenta (Π, P), in the body."""
    return System(
        SE3(),
        lambda g, v, parameters: 0.5 * v @ (parameters["inertia"] * v),
        symmetries={"momentum": translations(), "angular": left_rotations()},
        # The semi-axes enter no law: they are there for the picture.
        parameters={"inertia": np.concatenate(ellipsoid(axes, mass)), "axes": np.asarray(axes, float)},
    )


def ellipsoid(axes: Any, mass: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Moments J and masses M of a neutrally buoyant ellipsoid together with the fluid it moves."""
    a = np.asarray(axes, float)
    if a.shape != (3,) or not (np.isfinite(a).all() and (a > 0).all() and np.isfinite(mass) and mass > 0):
        raise DomainError(f"An ellipsoid has three positive semi-axes and a positive mass, got axes {axes} and mass {mass}.")
    alpha, square = lamb_integrals(a), a**2
    J = np.empty(3)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        difference, total = square[j] - square[k], square[j] + square[k]
        # Both vanish with difference²: a body of revolution moves no fluid when it turns about its axis.
        below = 2 * difference + total * (alpha[j] - alpha[k])
        added = 0.0 if abs(difference) < 1e-9 * total else difference**2 * (alpha[k] - alpha[j]) / below
        J[i] = mass / 5 * (total + added)
    return J, mass * 2 / (2 - alpha)


def lamb_integrals(axes: np.ndarray) -> np.ndarray:
    """α_i by quadrature; they add up to 2. With λ = s²(1/u² − 1), s the largest axis, the interval is finite and the integrand smooth."""
    from scipy.integrate import quad

    s2 = float(np.max(axes)) ** 2

    def integrand(u: float, i: int) -> float:
        shifted = axes**2 + s2 * (1 / u**2 - 1)
        return float(2 * s2 / u**3 / (shifted[i] * np.sqrt(shifted.prod())))

    return np.array([np.prod(axes) * quad(integrand, 0.0, 1.0, args=(i,), epsabs=1e-13, epsrel=1e-12, limit=200)[0] for i in range(3)])


def casimirs(p) -> Any:
    """|P|² and Π·P of momenta (..., 6)."""
    Pi, P = p[..., :3], p[..., 3:]
    return jnp.stack([jnp.sum(P * P, -1), jnp.sum(Pi * P, -1)], -1)


def on_the_section(system: System, angle: Any, turning: Any, *, speed: float = 8.0, product: float = 6.0, energy: float = 40.0) -> np.ndarray:
    """Momenta (Π, P) with P₃ = 0, dP₃/dt > 0, P at an `angle`, Π₃ = `turning`, |P| = `speed`, Π·P = `product` and a given energy.

    What is left free is the component of Π across P in the plane of the first two axes, which the energy determines.
    """
    J, M = np.split(np.asarray(system.parameters["inertia"]), 2)
    angle, turning = np.broadcast_arrays(np.asarray(angle, float), np.asarray(turning, float))
    direction, zero = np.stack([np.cos(angle), np.sin(angle)], -1), np.zeros(angle.shape)
    across = np.stack([-direction[..., 1], direction[..., 0]], -1)
    known = product / speed * direction
    # ½ Σ (known + b across)²/J = what the energy leaves, quadratic in b; dP₃/dt = P₁Ω₂ − P₂Ω₁ chooses the root.
    rest = energy - 0.5 * (speed**2 * direction**2 / M[:2]).sum(-1) - 0.5 * turning**2 / J[2]
    A, B, C = (0.5 * (across**2 / J[:2]).sum(-1), (known * across / J[:2]).sum(-1), 0.5 * (known**2 / J[:2]).sum(-1) - rest)
    room = B**2 - 4 * A * C
    if (room < 0).any():
        raise DomainError(f"No momentum with energy {energy} has angle {angle[room < 0]} and Π₃ = {turning[room < 0]} on the section.")
    for sign in (1, -1):
        Pi = known + ((-B + sign * np.sqrt(room)) / (2 * A))[..., None] * across
        rising = direction[..., 0] * Pi[..., 1] / J[1] - direction[..., 1] * Pi[..., 0] / J[0] > 0
        if rising.all():
            break
    return np.concatenate([Pi, turning[..., None], speed * direction, zero[..., None]], -1)


def _casimirs(trial: Trial) -> float:
    return spread(trial, lambda state: casimirs(state.p))


def _mass(i: int):
    return lambda trial: ellipsoid((3.0, 2.0, 1.0))[1][i]


def _moment(i: int):
    return lambda trial: ellipsoid((3.0, 2.0, 1.0))[0][i]


def start(scheme) -> State:
    """The velocity that the ellipsoid (3, 2, 1) has in the chaotic sea of the figure, at P along (1, 1, 0) and Π₃ = 2; any vehicle can have it."""
    usual = underwater_vehicle()
    velocity = on_the_section(usual, np.pi / 4, 2.0) / np.asarray(usual.parameters["inertia"])
    where = scheme.start(evaluate(scheme.space.origin), velocity=np.asarray(velocity))
    assert isinstance(where, State)
    return where


def picture(system: System, g) -> Drawing:
    """The ellipsoid with the semi-axes it was built with, and its path."""
    R, x = np.asarray(g[0]), np.asarray(g[1])
    return Drawing(x[:, None], R[:, None], [Part("ellipsoid", np.asarray(system.parameters["axes"]))], trails=[(0, (0.0, 0.0, 0.0))])


ENTRY = Entry(
    "underwater-vehicle",
    __doc__,
    underwater_vehicle,
    start=start,
    step=0.025,
    facts=(
        *(Fact(f"M_{i + 1}/m of the ellipsoid (3, 2, 1)", _mass(i), value, 1e-6) for i, value in enumerate((1.185256, 1.364543, 2.361527))),
        *(Fact(f"J_{i + 1}/m of the ellipsoid (3, 2, 1)", _moment(i), value, 1e-6) for i, value in enumerate((1.383267, 3.416472, 2.755741))),
        Fact("a sphere carries half of its mass in fluid", lambda trial: ellipsoid((1.0, 1.0, 1.0))[1][0], 1.5, 1e-10),
        Fact("|P|² and Π·P are kept", _casimirs),
    ),
    picture=picture,
)
