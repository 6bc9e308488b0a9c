"""Spring–mass lattice: masses in the plane, each joined to its eight neighbours.

    L = Σ ½ m |v_i|² − Σ_springs ½ k (|x_i − x_j| − l_ij)²,      γ_ij = s |x_i − x_j|  (if asked for, one for each spring)

A free molecule of springs with rest lengths 1 and √2; nonlinear because springs turn. Its mean kinetic energy per mass is a temperature, which a
variational integrator computes without drift for very long times while a more accurate method, not symplectic, loses it (Lew, Marsden, Ortiz, West,
Int. J. Numer. Meth. Eng. 60, 153 (2004); the original's parameters are not published, these are ours). Forces and kicks act along springs, so
momentum and angular momentum are conserved.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np

from bismut.body_loops import Bonds, Pair, pairs
from bismut.drawing import Drawing, Line, Part, in_space
from bismut.gallery.entry import Entry, Fact
from bismut.mechanics import Scheme, State, System, left_rotation, mechanical, translations
from bismut.spaces import Euclidean


def spring_lattice(rows: int = 4, columns: int = 4, stiffness: float = 1.0, mass: float = 1.0, noise: float | None = None) -> System:
    """`rows` × `columns` masses; with `noise`, every spring is kicked along its length with that amplitude."""
    first, second, lengths = springs(rows, columns)

    bonds = Bonds(first, second)

    def energy(x, parameters):
        stretched = lambda a, b, length: Pair(total=(distance(a, b) - length) ** 2)
        return 0.5 * parameters["stiffness"] * pairs(stretched, x, lengths.astype(x.dtype), bonds).total

    def kicks(x, parameters):
        return pairs(lambda a, b, _: Pair(own=parameters["noise"] * distance(a, b)), x, bonds=bonds).own

    return mechanical(
        Euclidean(2) ** (rows * columns),
        mass=mass,
        potential=energy,
        noise=None if noise is None else kicks,
        symmetries={"momentum": translations(2), "angular": left_rotation(1.0)},
        # The places of rest enter no law: they are there for starts.
        parameters={"stiffness": stiffness, "rest": at_rest(rows, columns)} | ({} if noise is None else {"noise": noise}),
    )


def distance(a, b):
    r = b - a
    return jnp.sqrt(r @ r)


def springs(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which masses each spring joins, and its rest length."""
    number = lambda i, j: i * columns + j
    bonds = []
    for i, j in product(range(rows), range(columns)):
        for di, dj in ((0, 1), (1, 0), (1, 1), (1, -1)):
            if i + di < rows and 0 <= j + dj < columns:
                bonds.append((number(i, j), number(i + di, j + dj), np.hypot(di, dj)))
    first, second, lengths = zip(*bonds, strict=True)
    return np.array(first), np.array(second), np.array(lengths)


def at_rest(rows: int, columns: int) -> np.ndarray:
    """The unstrained lattice, centred."""
    x = np.array([(i, j) for i, j in product(range(rows), range(columns))], float)
    return x - x.mean(0)


def random_velocities(x: np.ndarray, kinetic: float, seed: int) -> np.ndarray:
    """Normal velocities without linear and angular momentum, scaled to a mean kinetic energy per unit mass point."""
    v = np.random.default_rng(seed).normal(size=x.shape)
    v -= v.mean(0)
    across = np.stack([-x[:, 1], x[:, 0]], -1)
    v -= across * (v * across).sum() / (across**2).sum()
    return v * np.sqrt(kinetic / (0.5 * (v**2).sum(1).mean()))


def random_start(scheme: Scheme, kinetic: float = 0.06, seed: int = 0) -> State:
    """The unstrained lattice with random velocities."""
    x = np.asarray(scheme.system.parameters["rest"])
    start = scheme.start(x, velocity=random_velocities(x, kinetic, seed))
    assert isinstance(start, State)
    return start


def picture(system: System, x) -> Drawing:
    """Masses in the plane with their springs: those of length 1 or √2 in the lattice at rest."""
    rest = np.asarray(system.parameters["rest"])
    first, second = np.nonzero(np.triu(np.linalg.norm(rest[:, None] - rest[None], axis=-1) < 1.5, 1))
    return Drawing(in_space(x), None, [Part("ball", 0.16)], [Line(first, second)], flat=True)


ENTRY = Entry(
    "spring-lattice",
    __doc__,
    spring_lattice,
    start=random_start,
    step=0.1,
    facts=(Fact("a 4 × 4 lattice has 42 springs", lambda trial: len(springs(4, 4)[0]), 42.0, 0.0),),
    picture=picture,
)
