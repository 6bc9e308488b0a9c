"""Sites of molecules and bonded terms, against sums and formulas written out in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bismut as bm
from bismut.errors import BismutError

RNG = np.random.default_rng(11)
WATER = np.array([[0.0, 0.0, -0.06], [0.8, 0.0, 0.5], [-0.8, 0.0, 0.5]])
ROD = np.array([[0.7, 0.1, 0.0], [-0.6, 0.0, 0.2]])
SIDE = 9.0


def rotations(count: int) -> np.ndarray:
    return Rotation.random(count, random_state=np.random.default_rng(3)).as_matrix()


def fade(r, begin, end):
    s = np.clip((r**2 - begin**2) / (end**2 - begin**2), 0, 1)
    return 1 - s**3 * (10 - 15 * s + 6 * s**2)


def by_hand(x, R, kinds, species, between, *, side=None, cutoff=None, skip=()):
    """Σ over pairs of bodies and of their sites; kinds are (points, charges, ε, σ)."""
    energy = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if (i, j) in skip:
                continue
            r = x[j] - x[i]
            r = r if side is None else r - side * np.round(r / side)
            (points, *one), (others, *two) = kinds[species[i]], kinds[species[j]]
            weight = 1.0 if cutoff is None else fade(np.linalg.norm(r), *cutoff)
            for z, q, e, s in zip(points, *one, strict=True):
                for y, p, f, t in zip(others, *two, strict=True):
                    energy += weight * between(np.linalg.norm(r + R[j] @ y - R[i] @ z), q * p, np.sqrt(e * f), s, t)
    return energy


def usual(r, qq, e, s, t):
    six = (0.5 * (s + t) / r) ** 6
    return 4 * e * six * (six - 1) + 2.5 * qq / r


KINDS = [(WATER, [-0.8, 0.4, 0.4], [0.3, 0.0, 0.1], [1.1, 1.0, 0.6]), (ROD, [0.5, -0.5], [0.2, 0.4], [0.9, 1.2])]


def lists(kinds) -> dict:
    points, charges, epsilon, sigma = zip(*kinds, strict=True)
    return {"points": list(points), "charges": list(charges), "epsilon": list(epsilon), "sigma": list(sigma)}


def spread(count: int) -> np.ndarray:
    cells = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3)
    return cells[:count] * SIDE / 3 + RNG.uniform(-0.3, 0.3, (count, 3))


def test_sites_of_several_kinds_have_the_sum_over_sites():
    x, R, species = spread(8), rotations(8), np.array([0, 1, 1, 0, 0, 1, 0, 1])
    energy = bm.sites(**lists(KINDS), species=species, constant=2.5)
    assert np.isclose(float(energy(x, R)), by_hand(x, R, KINDS, species, usual), rtol=1e-12)
    boxed = bm.sites(**lists(KINDS), species=species, constant=2.5, cutoff=(3.0, 4.4), exclude=[(3, 0), (1, 6)]).inside((SIDE,) * 3)
    expected = by_hand(x, R, KINDS, species, usual, side=SIDE, cutoff=(3.0, 4.4), skip=((0, 3), (1, 6)))
    assert np.isclose(float(boxed(x, R)), expected, rtol=1e-12)


def test_mixing_rules_and_the_reaction_field_are_their_formulas():
    x, R, c = spread(5), rotations(5), 4.0
    k = (60.0 - 1) / (2 * 60.0 + 1) / c**3

    def field(r, qq, e, s, t):
        six = (np.sqrt(s * t) / r) ** 6
        return 4 * e * six * (six - 1) + qq * (1 / r + k * r**2 - 1 / c - k * c**2)

    names = dict(zip(("points", "charges", "epsilon", "sigma"), KINDS[0], strict=True))
    energy = bm.sites(**names, mixing="geometric", electrostatics=bm.ReactionField(60.0), cutoff=(3.5, c)).inside((SIDE,) * 3)
    assert np.isclose(float(energy(x, R)), by_hand(x, R, KINDS[:1], [0] * 5, field, side=SIDE, cutoff=(3.5, c)), rtol=1e-12)
    # Two charges at the cutoff of a conductor exert no force, faded or not.
    pair = bm.sites(charges=[1.0, -1.0], electrostatics=bm.ReactionField(), cutoff=(2.0, 3.0))
    slope = jax.grad(lambda r: pair(jnp.array([[0.0, 0, 0], [r, 0, 0]])))
    assert abs(float(slope(3.0))) < 1e-12
    assert np.isclose(float(slope(1.5)), 1 / 1.5**2 - 1.5 / 27, rtol=1e-12)


def test_points_are_sites_and_scaled_pairs_add_up():
    """Of a chain of six points 1–2 and 1–3 pairs do not act and 1–4 pairs do by half."""
    x = np.cumsum(RNG.normal(size=(6, 3)) * 0.3 + [0.9, 0, 0], 0)
    q, e, s = RNG.normal(size=6), RNG.uniform(0.1, 1, 6), RNG.uniform(0.8, 1.2, 6)
    chain = [(i, i + 1) for i in range(5)]
    carried = {"charges": q, "epsilon": e, "sigma": s}
    near, four = bm.bonded_pairs(chain, 1, 2, 3), bm.bonded_pairs(chain, 3)
    energy = bm.sites(**carried, exclude=near) + 0.5 * bm.sites(**carried, only=four)
    expected = 0.0
    for i in range(6):
        for j in range(i + 3, 6):
            r = np.linalg.norm(x[j] - x[i])
            six = ((s[i] + s[j]) / 2 / r) ** 6
            expected += (0.5 if j == i + 3 else 1.0) * (4 * np.sqrt(e[i] * e[j]) * six * (six - 1) + q[i] * q[j] / r)
    assert np.isclose(float(energy(x)), expected, rtol=1e-12)
    x[1] = x[0]  # excluded points may even coincide
    assert np.isfinite(jax.grad(energy)(jnp.asarray(x))).all()


def test_bonded_pairs_go_the_shortest_way():
    ring = [(i, (i + 1) % 5) for i in range(5)]
    assert len(bm.bonded_pairs(ring, 1)) == len(bm.bonded_pairs(ring, 2)) == 5
    assert len(bm.bonded_pairs(ring, 3)) == 0
    assert bm.bonded_pairs([(0, 1), (1, 2), (2, 3), (2, 4)], 3).tolist() == [[0, 3], [0, 4]]


def test_angles_and_dihedrals_are_their_formulas_in_a_box_too():
    turn = np.deg2rad(100.0)
    x = np.array([[np.cos(turn), np.sin(turn), 0], [0, 0, 0], [1.3, 0, 0]])
    assert np.isclose(float(bm.angles([(0, 1, 2)], 3.0, 1.2)(x)), 1.5 * (turn - 1.2) ** 2, rtol=1e-13)
    phi = np.deg2rad(-70.0)
    four = np.array([[0.4, 1, 0], [0, 0, 0], [1.5, 0, 0], [1.8, np.cos(phi), np.sin(phi)]])
    twist = bm.dihedrals([(0, 1, 2, 3)] * 2, [2.0, 0.7], [1, 3], [0.3, 0.0])
    expected = 2.0 * (1 + np.cos(-phi - 0.3)) + 0.7 * (1 + np.cos(3 * phi))
    other = 2.0 * (1 + np.cos(phi - 0.3)) + 0.7 * (1 + np.cos(3 * phi))
    value = float(twist(four))
    assert np.isclose(value, other, rtol=1e-13) != np.isclose(value, expected, rtol=1e-13)  # one sign, and always the same
    mirror = four * [1, 1, -1]
    assert np.isclose(float(twist(mirror)), expected if np.isclose(value, other) else other, rtol=1e-13)
    both = bm.angles([(0, 1, 2), (1, 2, 3)], 3.0, 1.2) + twist
    moved = four + 6.0 * np.array([[1, 0, 0], [0, -2, 0], [0, 0, 0], [3, 0, 1]])
    assert np.isclose(float(both.inside((6.0,) * 3)(moved)), float(both(four)), rtol=1e-12)
    force = np.asarray(jax.grad(both)(jnp.asarray(four)))
    assert np.abs(force.sum(0)).max() < 1e-13
    assert np.abs(np.cross(four, force).sum(0)).max() < 1e-13


def molecules() -> tuple:
    """Rigid molecules of two kinds with an Ewald sum."""
    x, R, species = spread(4), rotations(4), np.array([0, 1, 1, 0])
    ion = ([[0.0, 0.0, 0.1]], [0.4], [0.3], [1.2])
    energy = bm.sites(**lists([ion, KINDS[1]]), species=species, cutoff=4.4, electrostatics=bm.Ewald(0.1))
    system = bm.rigid_bodies(mass=np.ones(4), inertia=np.ones((4, 3)), potential=energy, box=SIDE)
    return system, (jnp.asarray(x), jnp.asarray(R))


def chain() -> tuple:
    """Five points with bonds, angles, a dihedral and exclusions."""
    links = [(i, i + 1) for i in range(4)]
    energy = (
        bm.bonds(links, 50.0)
        + bm.angles([(0, 1, 2), (1, 2, 3), (2, 3, 4)], 2.0, 1.9)
        + bm.dihedrals([(0, 1, 2, 3)], 1.0, 3)
        + bm.sites(charges=[0.3, -0.3, 0.3, -0.3, 0.1], epsilon=0.2, exclude=bm.bonded_pairs(links, 1, 2), cutoff=3.9)
    )
    zigzag = jnp.array([[0, 0, 0], [1, 0.2, 0], [1.3, 1.1, 0.3], [2.2, 1.2, 0.9], [2.4, 2.1, 1.2]])
    return bm.mechanical(bm.Euclidean(3) ** 5, potential=energy, box=8.0), zigzag


@pytest.mark.parametrize("make", [molecules, chain])
def test_machine_code_has_the_energies_of_numpy_and_keeps_them(make):
    """At h = 10⁻³ a Verlet path keeps its energy far better than its parts."""
    system, q = make()
    scheme = bm.Verlet(system)
    start = scheme.start(q, momentum=jax.tree.map(lambda leaf: 0.1 * jnp.ones(leaf.shape), system.space.zero()))
    run = bm.simulate(scheme, start, mode="native", step=1e-3, steps=20, trajectories=1, observe={"U": bm.potential_energy, "H": bm.energy})
    assert np.isclose(float(run.U.mean[0]), float(system.potential(q)), rtol=1e-12)
    assert np.ptp(np.asarray(run.H.mean)) < 1e-3 * np.ptp(np.asarray(run.U.mean))


@pytest.mark.slow
@pytest.mark.parametrize("make", [molecules, chain])
def test_machine_code_and_xla_agree(make):
    system, q = make()
    scheme = bm.Langevin(system, temperature=0.5, friction=1.0)
    settings = {"step": 0.002, "steps": 4, "trajectories": 2, "seed": 1, "observe": {"U": bm.potential_energy}}
    runs = [bm.simulate(scheme, scheme.start(q, temperature=0.5), mode=mode, **settings) for mode in ("native", "xla")]
    assert np.allclose(*(np.asarray(run.U.mean) for run in runs), rtol=1e-11)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bm.sites(WATER), "carry nothing"),
        (lambda: bm.sites(WATER, charges=[1.0, 2.0]), "one entry for each"),
        (lambda: bm.sites([WATER, ROD], charges=1.0, species=[0, 2]), "names 3 kinds"),
        (lambda: bm.sites(WATER, charges=1.0, mixing="own"), "mixing must be"),
        (lambda: bm.sites(charges=[1.0, 2.0], electrostatics=bm.ReactionField()), "cutoff"),
        (lambda: bm.sites(WATER, charges=1.0)(np.zeros((2, 3))), "only positions"),
        (lambda: bm.sites(charges=1.0, exclude=[(0, 0)]), "different bodies"),
        (lambda: bm.angles([(0, 1, 1)]), "different points"),
        (lambda: bm.angles([(0, 1, 5)])(np.zeros((3, 3))), "numbered"),
        (lambda: bm.bonded_pairs([(0, 1)], 0), "whole number of bonds"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(BismutError, match=words):
        make()


def bent(delta: float) -> np.ndarray:
    """Three points with the angle π − δ, in a general direction if that leaves 0 what it is."""
    x = np.array([[-1.1, 0, 0], [0, 0, 0], [1.3 * np.cos(delta), 1.3 * np.sin(delta), 0]])
    return x @ rotations(1)[0].T if delta else x


@pytest.mark.parametrize("rest", [np.pi, 1.9])
@pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-5, 0.05, 0.0995, 0.1, 1.0])
def test_a_straight_angle_has_its_force(rest, delta):
    """|∂U/∂x₂| = k |θ − θ₀|/r at every θ, also where it is π; on the tip of the cone of another θ₀ it is 0."""
    force = np.asarray(jax.grad(bm.angles([(0, 1, 2)], 10.0, rest))(jnp.asarray(bent(delta))))
    wanted = 0.0 if delta == 0 else 10.0 * abs(np.pi - delta - rest) / 1.3
    assert np.linalg.norm(force[2]) == pytest.approx(wanted, rel=1e-9 if delta > 1e-6 else 1e-3, abs=1e-14)
    assert np.abs(force.sum(0)).max() < 1e-13


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-4, 0.05, 0.0996, 0.3])
def test_a_straight_angle_has_its_second_derivatives(delta):
    """Against differences of the force; straight, with bonds l and l', they are k u uᵀ across, u = (1/l, −1/l − 1/l', 1/l')."""
    energy, x = bm.angles([(0, 1, 2)], 10.0, np.pi), jnp.asarray(bent(delta))
    force = jax.jit(jax.grad(lambda q: energy(q.reshape(3, 3))))
    flat, h = x.reshape(9), 1e-5
    differences = np.stack([(force(flat + h * e) - force(flat - h * e)) / (2 * h) for e in np.eye(9)])
    hessian = np.asarray(jax.hessian(lambda q: energy(q.reshape(3, 3)))(flat))
    assert np.abs(hessian - differences).max() < 1e-6
    if delta == 0:
        u = np.array([1 / 1.1, -1 / 1.1 - 1 / 1.3, 1 / 1.3])
        assert np.linalg.eigvalsh(hessian)[-2:] == pytest.approx(10 * u @ u, rel=1e-12)
        assert np.abs(np.linalg.eigvalsh(hessian)[:-2]).max() < 1e-12


def test_a_straight_molecule_bends_as_its_temperature_says():
    """⟨U⟩ of ½ k δ² with the density sin δ e^{−U/kT}, from a straight start; false alarm one in 10⁵."""
    bend = bm.angles([(0, 1, 2)], 20.0, np.pi)
    system = bm.mechanical(bm.Euclidean(3) ** 3, potential=bm.bonds([(0, 1), (1, 2)], 100.0, 1.0) + bend)
    scheme = bm.Langevin(system, temperature=1.0, friction=3.0)
    start = scheme.start(jnp.array([[-1.0, 0, 0], [0, 0, 0], [1, 0, 0]]), temperature=1.0)
    settings = {"step": 0.02, "steps": 300, "trajectories": 3000, "seed": 3, "every": 300}
    run = bm.simulate(scheme, start, observe={"U": lambda state: bend(state.q)}, **settings)
    delta = np.linspace(0, np.pi, 20_001)
    weight = np.sin(delta) * np.exp(-10 * delta**2)
    exact = (10 * delta**2 * weight).sum() / weight.sum()
    assert abs(float(run.U.mean[-1]) - exact) < 4.5 * float(run.U.stderr[-1])
    assert not run.outcome.failures


def test_whole_multiplicities_alone_are_dihedrals():
    with pytest.raises(BismutError, match=r"multiplicity of dihedrals must be whole.* got 1\.5"):
        bm.dihedrals([(0, 1, 2, 3)], 1.0, 1.5)
    bm.dihedrals([(0, 1, 2, 3)], 1.0, [3.0])
