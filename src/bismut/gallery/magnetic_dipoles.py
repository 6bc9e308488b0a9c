"""Magnetic dipoles: K small magnets that move, turn and kick each other.

    L = Σ ½ M |v_i|² + ½ w_i·I w_i − U,      U = C Σ_{i<j} [ m_i·m_j/r³ − 3 (m_i·r)(m_j·r)/r⁵ + ε (σ/r)¹² ],      m_i = R_i e₃
    γ_ij = s exp(−r²/2)            one for each pair

Ellipsoidal magnets with a soft core on (ℝ³ × SO(3))^K. Every force, torque and kick depends on relative configurations alone, so total momentum and
total angular momentum (orbital and spin) are conserved on every path; energy is not. Two magnets head to tail have the dipole energy −2/r³.
In a bath each of the six axes of every magnet comes to the same temperature, whatever the interaction.
"""

import jax.numpy as jnp
import numpy as np

from bismut.drawing import Drawing, Part, semi_axes
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.mechanics import Scheme, State, System, dipoles, harmonic_trap, left_rotations, pair_noise, rigid_bodies, soft_spheres, translations
from bismut.programs.evaluation import evaluate
from bismut.spaces import SO3


def magnetic_dipoles(
    bodies: int = 3,
    inertia=(0.1, 0.15, 0.2),
    mass: float = 1.0,
    strength: float = 1.0,
    core: float = 1.0,
    trap: float = 0.0,
    noise: float | None = 0.2,
) -> System:
    """`bodies` magnets with moment 1 along their third axis, coupling C = `strength`, core energy ε = `core`, perhaps in a trap ½ `trap` |x|², which
    breaks the symmetry under translations; noise=None leaves pair noise out.
    """
    kicks = pair_noise(lambda a, b, parameters: parameters["noise"] * jnp.exp(-0.5 * b.x @ b.x))

    def potential(x, R, parameters):
        acting = dipoles((0.0, 0.0, 1.0), parameters["strength"]) + soft_spheres(strength=parameters["core"]) + harmonic_trap(parameters["trap"])
        return acting(x, R)

    return rigid_bodies(
        mass=np.full(bodies, mass),
        inertia=np.tile(np.asarray(inertia, float), (bodies, 1)),
        potential=potential,
        noise=None if noise is None else kicks,
        symmetries={"momentum": translations(), "angular": left_rotations()},
        parameters={"strength": strength, "core": core, "trap": trap} | ({} if noise is None else {"noise": noise}),
    )


def on_a_grid(bodies: int, spacing: float = 1.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Positions on a cubic grid about the origin, with random orientations."""
    generator = np.random.default_rng(seed)
    side = int(np.ceil(bodies ** (1 / 3)))
    corners = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)[:bodies]
    vectors = generator.normal(size=(bodies, 4))
    turns = np.stack([np.asarray(evaluate(SO3().from_quaternion, v / np.linalg.norm(v))) for v in vectors])
    x = spacing * corners
    return x - x.mean(0), turns


def moving(scheme: Scheme) -> State:
    """Magnets on a grid with small random velocities."""
    count = scheme.system.space.dim // 6
    generator = np.random.default_rng(1)
    start = scheme.start(on_a_grid(count), velocity=(0.3 * generator.normal(size=(count, 3)), generator.normal(size=(count, 3))))
    assert isinstance(start, State)
    return start


def _head_to_tail(trial: Trial) -> float:
    pair = magnetic_dipoles(bodies=2, core=0.0, noise=None)
    x = jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    return float(pair.potential((x, jnp.tile(jnp.eye(3), (2, 1, 1)))))


def picture(system: System, q) -> Drawing:
    """Ellipsoids of inertia, at 0.6 of their size so that neighbours stay apart, with their moments as arrows."""
    x, R = map(np.asarray, q)
    mass, moments = map(np.asarray, system.momentum((x[0], R[0]), (np.ones_like(x[0]), np.ones_like(x[0]))))  # M v and I w with v = w = (1, 1, 1)
    size = 0.6 * semi_axes(moments, mass[:, 0])
    return Drawing(x, R, [Part("ellipsoid", size), Part("arrow", np.array([0.2, 0.2, 1.0]) * 1.6 * size[:, 2:], colour="ink")])


ENTRY = Entry(
    "magnetic-dipoles",
    __doc__,
    magnetic_dipoles,
    start=moving,
    step=0.01,
    facts=(Fact("two magnets head to tail at distance 2 have the dipole energy −2/2³", _head_to_tail, -0.25, 1e-14),),
    picture=picture,
)
