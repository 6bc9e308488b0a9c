"""Central pair energies, pressure and radial distribution, against closed forms, quadrature and published values.

Statistical tests fix their seed and allow four standard errors: a false alarm of 6e-5 each.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.fft import dst

import bismut as bm
from bismut.errors import BismutError, DomainError
from tests.mechanics.bodies.equation_of_state import johnson_zollweg_gubbins, kolafa_nezbeda

SIGMAS = 4.0


def lattice(n: int, side: float) -> np.ndarray:
    """4 n³ points of a face-centred cubic lattice."""
    base = np.array([[0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    cells = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    return (cells + base).reshape(-1, 3) * side / n


@pytest.mark.parametrize(
    ("energy", "formula"),
    [
        (bm.lennard_jones(0.7, 1.1), lambda r: 2.8 * ((1.1 / r) ** 12 - (1.1 / r) ** 6)),
        (bm.weeks_chandler_andersen(0.7, 1.1), lambda r: (2.8 * ((1.1 / r) ** 12 - (1.1 / r) ** 6) + 0.7) * (r < 1.1 * 2 ** (1 / 6))),
        (bm.yukawa(2.0, 0.8, 0.9), lambda r: 2.0 * np.exp(-0.8 * (r - 0.9)) * 0.9 / r),
        (bm.yukawa(2.0, 0.8), lambda r: 2.0 * np.exp(-0.8 * r) / r),
        (bm.coulomb([1.5, -2.0], 3.0), lambda r: -9.0 / r),
        (bm.lennard_jones([0.5, 2.0], [1.0, 1.4]), lambda r: 4 * ((1.2 / r) ** 12 - (1.2 / r) ** 6)),
    ],
)
def test_two_points_have_the_energy_of_the_formula(energy, formula):
    for r in (0.9, 1.2, 1.5, 2.7):
        x = np.array([[0.1, 0.2, 0.3], [0.1 + 0.6 * r, 0.2, 0.3 + 0.8 * r]])
        assert np.isclose(float(energy(x)), formula(r), rtol=1e-12, atol=1e-14)


def test_a_table_is_the_spline_through_its_values_and_its_force_is_continuous():
    r = np.linspace(0.8, 3.0, 400)
    well = lambda r: 4 * (r**-12.0 - r**-6.0) * (3.0 - r) ** 2
    energy = bm.tabulated(r, well(r))
    of = lambda distance: energy(jnp.array([[0.0, 0.0, 0.0], [distance, 0.0, 0.0]]))
    for distance in (0.9003, 1.1224, 1.7777, 2.5):
        assert np.isclose(float(of(distance)), well(distance), atol=1e-6)
        assert np.isclose(float(jax.grad(of)(distance)), (well(distance + 1e-6) - well(distance - 1e-6)) / 2e-6, atol=2e-3)
    assert float(of(3.2)) == 0.0
    assert np.isclose(float(jax.grad(of)(0.5)), float(jax.grad(of)(0.8)), rtol=1e-9)  # a straight line nearer than the first
    with pytest.raises(DomainError, match="equally spaced"):
        bm.tabulated([1.0, 2.0, 4.0, 5.0], [0.0] * 4)


def _fluid(n: int = 2, density: float = 0.7, **more):
    count = 4 * n**3
    side = (count / density) ** (1 / 3)
    return bm.mechanical(bm.Euclidean(3) ** count, potential=bm.lennard_jones(cutoff=0.49 * side), box=side, **more), lattice(n, side), side


def test_the_virial_is_the_derivative_of_the_energy_by_the_box():
    """P V = Σ p·v/3 − dU/dε for (1 + ε) x in a box (1 + ε) l, also axis by axis: by finite differences of the energy."""
    system, x, side = _fluid()
    rng = np.random.default_rng(3)
    x, p = x + 0.1 * rng.normal(size=x.shape), rng.normal(size=x.shape)
    scheme = bm.Verlet(system)
    state = scheme.start(jnp.asarray(x), momentum=jnp.asarray(p))
    tensor = np.asarray(bm.pressure_tensor(scheme, state))
    cutoff = 0.49 * side

    def energy(scales):
        box = bm.Box(tuple(side * np.asarray(scales)))
        return float(bm.lennard_jones(cutoff=cutoff).inside(box)(jnp.asarray(x * np.asarray(scales))))

    eps = 1e-6
    for axis in range(3):
        up, down = (1 + sign * eps * np.eye(3)[axis] for sign in (1, -1))
        slope = (energy(up) - energy(down)) / (2 * eps)
        assert np.isclose(tensor[axis, axis] * side**3, (p[:, axis] ** 2).sum() - slope, rtol=1e-7)
    assert np.isclose(float(bm.pressure(scheme, state)), np.trace(tensor) / 3, rtol=1e-14)
    assert np.allclose(tensor, tensor.T, atol=1e-12)  # central forces


def test_rigid_bodies_have_the_molecular_virial():
    """Centres are strained, orientations stay: against finite differences for dipoles."""
    K, side = 8, 6.0
    rng = np.random.default_rng(5)
    x = lattice(2, side)[:K] + 0.1 * rng.normal(size=(K, 3))
    R = np.asarray(jax.vmap(bm.SO3().random)(jax.random.split(jax.random.key(1), K)))
    U = bm.dipoles((0.0, 0.0, 1.0), cutoff=2.9) + bm.soft_spheres(cutoff=2.9)
    system = bm.rigid_bodies(mass=np.ones(K), inertia=np.ones((K, 3)), potential=U, box=side)
    scheme = bm.Verlet(system)
    zero = (jnp.zeros((K, 3)), jnp.zeros((K, 3)))
    tensor = np.asarray(bm.pressure_tensor(scheme, scheme.start((jnp.asarray(x), jnp.asarray(R)), momentum=zero)))
    energy = lambda s: float(U.inside(bm.Box((side * s,) * 3))(jnp.asarray(s * x), jnp.asarray(R)))
    assert np.isclose(np.trace(tensor) * side**3, -(energy(1 + 1e-6) - energy(1 - 1e-6)) / 2e-6, rtol=1e-7)


def test_a_field_that_turns_bodies_does_not_press():
    """It does no work when the box is strained; one that pulls at centres does, and is refused."""
    K, side = 8, 6.0
    U = bm.dipoles((0.0, 0.0, 1.0), cutoff=2.9) + bm.soft_spheres(cutoff=2.9)
    R = jax.vmap(bm.SO3().random)(jax.random.split(jax.random.key(1), K))
    state = bm.State((jnp.asarray(lattice(2, side)[:K]), R), (jnp.ones((K, 3)), jnp.zeros((K, 3))))
    scheme = lambda more: bm.Verlet(bm.rigid_bodies(mass=np.ones(K), inertia=np.ones((K, 3)), potential=more, box=side))
    field = bm.uniform_field((0.3, 0.0, 1.0), moments=(0.0, 0.0, 1.0))
    bare, turned = (np.asarray(bm.pressure_tensor(scheme(more), state)) for more in (U, U + field))
    np.testing.assert_array_equal(turned, bare)
    run = {"step": 0.01, "steps": 2, "trajectories": 2, "every": 1, "observe": {"P": bm.pressure}}
    result = bm.simulate(scheme(U + field), scheme(U + field).start(state.q, momentum=state.p), **run)  # in the machine loop as well
    assert np.isclose(float(result.P.mean[0]), np.trace(bare) / 3, rtol=1e-12)
    with pytest.raises(DomainError, match="act otherwise"):
        bm.pressure_tensor(scheme(U + bm.harmonic_trap(1.0)), state)


def test_an_ideal_gas_has_its_pressure_and_fluctuations():
    """P V = N kT and Var P = 2 P²/(3N): the kinetic energy of N points at fixed volume."""
    count, side, kT = 32, 40.0, 1.3
    system = bm.mechanical(bm.Euclidean(3) ** count, potential=bm.lennard_jones(1e-12, 0.1, cutoff=1.0), box=side)
    scheme = bm.Langevin(system, temperature=kT, friction=1.0)
    x = np.random.default_rng(1).uniform(0, side, (count, 3))
    n = 5_000
    result = bm.simulate(scheme, scheme.start(jnp.asarray(x), temperature=kT), step=0.1, steps=1, trajectories=n, seed=2, observe={"P": bm.pressure})
    ideal = count * kT / side**3
    mean, std = float(result.P.mean[0]), float(result.P.std[0])
    assert abs(mean - ideal) < SIGMAS * float(result.P.stderr[0])
    expected = ideal * np.sqrt(2 / (3 * count))
    assert abs(std - expected) < SIGMAS * expected / np.sqrt(2 * n)


@pytest.mark.long
def test_a_dilute_gas_is_distributed_by_boltzmann():
    """g(r) → e^{−u/kT} as ρ → 0, here of two points, for which it is exact up to the normalisation of the box; P by the second virial coefficient."""
    side, kT = 5.0, 1.5
    u = lambda r: 4 * (r**-12.0 - r**-6.0)
    potential = bm.lennard_jones(cutoff=(2.2, 2.5))
    system = bm.mechanical(bm.Euclidean(3) ** 2, potential=potential, box=side)
    scheme = bm.Langevin(system, temperature=kT, friction=1.0)
    start = scheme.start(jnp.array([[0.0, 0.0, 0.0], [2.0, 1.0, 1.0]]), temperature=kT)
    observe = {"g": bm.radial_distribution(cutoff=2.5, bins=25, every=100), "P": bm.time_average(bm.pressure, every=5)}
    result = bm.simulate(scheme, start, step=0.02, steps=4000, burn_in=500, trajectories=160, seed=4, observe=observe)
    r, g, error = np.asarray(result.g.g.r), np.asarray(result.g.g)[0], np.asarray(result.g.stderr)[0]
    switch = lambda r: np.asarray(jax.vmap(potential.parts[0].cutoff)(jnp.asarray(r**2)))
    fine = np.linspace(1e-3, 2.5, 25 * 400 + 1)[:-1] + 0.5 * 2.5 / 10_000
    boltzmann = np.exp(-u(fine) * switch(fine) / kT)
    weights = fine**2
    volume = side**3 + 4 * np.pi * np.sum((boltzmann - 1) * weights) * (fine[1] - fine[0])  # ∫ e^{−u/kT} over the box
    expected = (
        side**3 / volume * np.add.reduceat(boltzmann * weights, np.arange(0, 10_000, 400)) / np.add.reduceat(weights, np.arange(0, 10_000, 400))
    )
    far = r > 0.9
    assert np.all(np.abs(g - expected)[far] < 4.5 * np.maximum(error, 1e-3)[far]), (g - expected) / error  # the worst of 16 bins: 1e-4
    # P = 2kT/V − ⟨r u′⟩/3V, by quadrature.
    slope = np.gradient(u(fine) * switch(fine), fine)
    virial = -4 * np.pi * np.sum(boltzmann * slope * fine**3) * (fine[1] - fine[0]) / volume
    exact = (2 * kT + virial / 3) / side**3
    assert abs(float(result.P.mean) - exact) < SIGMAS * float(result.P.stderr) + 1e-4 * exact


def test_the_tail_is_the_integral_beyond_the_cutoff():
    """Of a Lennard-Jones energy cut sharply at c, u_tail = (8/3) π ρ [c⁻⁹/3 − c⁻³]; a narrow switch is nearly that."""
    count, side, c = 256, 7.0, 3.0
    system = bm.mechanical(bm.Euclidean(3) ** count, potential=bm.lennard_jones(cutoff=(c - 1e-6, c)), box=side)
    tail, density = bm.tail_correction(system), count / side**3
    assert np.isclose(tail.energy, 8 / 3 * np.pi * density * (c**-9 / 3 - c**-3), rtol=1e-5)
    assert np.isclose(tail.pressure, density * tail.energy, rtol=1e-12)
    with pytest.raises(DomainError, match="too slowly"):
        bm.tail_correction(bm.mechanical(bm.Euclidean(3) ** 2, potential=bm.coulomb([1.0, 1.0], cutoff=3.0), box=side))


def test_the_tail_of_a_mixture_is_that_of_its_pairs_and_bonds_have_none():
    """Σ_ab c_a c_b of 16πε_ab [σ_ab¹²c⁻⁹/9 − σ_ab⁶c⁻³/3], halved, with σ_ab = (σ_a + σ_b)/2 and ε_ab = √(ε_a ε_b)."""
    epsilon, sigma, counts, side, c = np.array([1.0, 0.5]), np.array([1.0, 1.4]), np.array([3, 5]), 9.0, 3.0
    potential = bm.sites(epsilon=np.repeat(epsilon, counts), sigma=np.repeat(sigma, counts), cutoff=(c - 1e-6, c))
    points = bm.Euclidean(3) ** 8
    tail = bm.tail_correction(bm.mechanical(points, potential=potential, box=side))
    s, e = 0.5 * (sigma[:, None] + sigma), np.sqrt(epsilon[:, None] * epsilon)
    pairs = 16 * np.pi * e * (s**12 * c**-9 / 9 - s**6 * c**-3 / 3)
    assert np.isclose(tail.energy, 0.5 * counts @ pairs @ counts / 8 / side**3, rtol=1e-5)
    assert np.isclose(tail.pressure, tail.energy * 8 / side**3, rtol=1e-12)
    bonded = potential + bm.springs([(0, 1)]) + bm.bonds([(1, 2)]) + bm.angles([(0, 1, 2)])
    assert bm.tail_correction(bm.mechanical(points, potential=bonded, box=side)) == tail
    with pytest.raises(DomainError, match="Nothing is left out"):
        bm.tail_correction(bm.mechanical(points, potential=bm.springs([(0, 1)]), box=side))


def test_the_virial_of_bonded_terms_is_the_derivative_by_the_box():
    """Of a bond across the side of a box, angles, dihedrals and a spring: −dU/ds where places and one side at a time grow by 1 + s, and U alike."""
    x = np.random.default_rng(5).uniform(-0.9, 0.9, (4, 3)) + np.array([[0.0, 0, 0], [1.2, 0, 0], [1.5, 1.3, 0], [2.0, 1.5, 1.1]])
    x[0, 0] += 6.0
    potential = bm.bonds([(0, 1), (1, 2), (2, 3)], length=1.1, stiffness=30.0) + bm.angles([(0, 1, 2), (1, 2, 3)]) + bm.dihedrals([(0, 1, 2, 3)])
    potential = potential + bm.springs([(0, 3)], stiffness=2.0)
    system = bm.mechanical(bm.Euclidean(3) ** 4, potential=potential, box=6.0)
    scheme = bm.Verlet(system)
    tensor = np.asarray(bm.pressure_tensor(scheme, scheme.start(jnp.asarray(x), momentum=jnp.zeros((4, 3)))))
    assert np.abs(np.diag(tensor)).min() > 1e-4
    np.testing.assert_allclose(tensor, tensor.T, atol=1e-12)
    for axis in range(3):

        def energy(s, axis=axis):
            scales = 1 + s * np.eye(3)[axis]
            return float(potential.inside(tuple(6.0 * scales))(x * scales))

        assert np.isclose(tensor[axis, axis] * 6.0**3, -(energy(1e-5) - energy(-1e-5)) / 2e-5, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("density", "energy", "pressure"), [(0.776, -5.5121, 0.0067714), (0.86, -6.0305, 1.2660)])
def test_the_lennard_jones_fluid_has_its_published_energy_and_pressure(density, energy, pressure):
    """T* = 0.85, corrected for the tail: the reference values of the NIST standard reference simulations."""
    n = 5
    count = 4 * n**3
    side, kT = (count / density) ** (1 / 3), 0.85
    system = bm.mechanical(bm.Euclidean(3) ** count, potential=bm.lennard_jones(cutoff=(2.7, 3.0)), box=side)
    scheme = bm.Langevin(system, temperature=kT, friction=1.0)
    observe = {"U": bm.time_average(bm.potential_energy, every=20), "P": bm.time_average(bm.pressure, every=20)}
    start = scheme.start(jnp.asarray(lattice(n, side)), temperature=kT)
    result = bm.simulate(scheme, start, step=0.004, steps=10_000, burn_in=4_000, trajectories=8, seed=1, observe=observe)
    tail = bm.tail_correction(system)
    assert abs(float(result.U.mean) / count + tail.energy - energy) < SIGMAS * float(result.U.stderr) / count + 0.003
    assert abs(float(result.P.mean) + tail.pressure - pressure) < SIGMAS * float(result.P.stderr) + 0.015


# An equation, and how far its U and P per point may be from a simulation: what it is off by at the states where NIST has reference simulations.
PUBLISHED = pytest.mark.parametrize(
    ("equation", "of_energy", "of_pressure"), [(kolafa_nezbeda, 0.001, 0.015), (johnson_zollweg_gubbins, 0.015, 0.01)]
)


@PUBLISHED
def test_the_equations_of_state_that_are_compared_with_are_right_elsewhere(equation, of_energy, of_pressure):
    """The reference simulations of NIST at T* = 0.85, whose errors are 0.0024 and 0.014 at most, and the second virial coefficient at T* = 2."""
    for density, energy, pressure in ((0.776, -5.5121, 0.0067714), (0.86, -6.0305, 1.2660)):
        ours = equation(density, 0.85)
        assert abs(ours.energy - energy) < of_energy
        assert abs(ours.pressure - pressure) < of_pressure
    r = np.linspace(1e-3, 60.0, 600_001)
    second = -2 * np.pi * np.trapezoid((np.exp(-2.0 * (r**-12.0 - r**-6.0)) - 1) * r**2, r)
    rho = 1e-4
    assert np.isclose((equation(rho, 2.0).pressure / (2.0 * rho) - 1) / rho, second, rtol=1e-3)


def test_the_virial_pressure_is_the_slope_of_a_free_energy():
    """P = −∂F/∂V = NkT/V + kT ∂/∂V ln⟨e^{−[U(sx, sl) − U(x, l)]/kT}⟩ at s = 1: by a difference of s = 1 ± 0.002 in the run that has the virial.

    A gas at ρ* = 0.3 and T* = 2. Both estimates see the same places, so that the error of the difference is mostly that of the momenta; without them,
    which contribute NkT/V, it is that of the places met, and what remains is s² times a third derivative.
    """
    count, density, kT, s = 32, 0.3, 2.0, 0.002
    volume = count / density
    side, ideal = volume ** (1 / 3), density * kT
    potential = bm.lennard_jones(cutoff=(1.8, 2.3))
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(3) ** count, potential=potential, box=side), temperature=kT, friction=4.0)
    change = volume * ((1 + s) ** 3 - (1 - s) ** 3)
    energy = lambda scale, x: potential.inside((scale * side,) * 3)(scale * x)
    weight = lambda scale, state: jnp.exp((energy(1.0, state.q) - energy(scale, state.q)) / kT)
    kinetic = lambda state: jnp.sum(state.p**2) / (3 * volume)
    slope = lambda state: kT * (weight(1 + s, state) - weight(1 - s, state)) / change
    quantities = {
        "P": bm.pressure,
        "up": lambda state: weight(1 + s, state),
        "down": lambda state: weight(1 - s, state),
        "kinetic": kinetic,
        "gap": lambda state: bm.pressure(scheme, state) - ideal - slope(state),
        "gap_of_places": lambda state: bm.pressure(scheme, state) - kinetic(state) - slope(state),
    }
    observe = {name: bm.time_average(function, every=10) for name, function in quantities.items()}
    start = scheme.start(bm.lattice("fcc", box=side, count=count), temperature=kT)
    result = bm.simulate(scheme, start, step=0.005, steps=2_000, burn_in=400, trajectories=64, seed=5, observe=observe)
    mean = {name: float(result[name].mean) for name in quantities}
    free = kT * np.log(mean["up"] / mean["down"]) / change  # −∂F/∂V without NkT/V
    error, finer = float(result.gap.stderr), float(result.gap_of_places.stderr)
    assert free < -20 * error  # attraction, told from nothing
    assert abs(mean["P"] - ideal - free) < SIGMAS * error
    assert abs(mean["P"] - mean["kinetic"] - free) < SIGMAS * finer + 1e-3 * abs(free)


def test_repulsive_spheres_have_the_pressure_of_their_virial_coefficients():
    """P = ρkT (1 + B₂ρ + B₃ρ² + ...) of WCA points at ρ = 0.12, B₂ and B₃ by quadrature; B₄ as of hard spheres with the same B₂, 0.2869 B₂³.

    Of N points the cluster expansion has (1 − 1/N) B₂ and (1 − 1/N) [(1 − 2/N) B₃ + 2 B₂²/N].
    """
    count, density, kT = 32, 0.12, 1.0
    side = (count / density) ** (1 / 3)
    r = np.linspace(0.0, 40.0, 2**16 + 1)[1:]
    u = np.where(r < 2 ** (1 / 6), 4 * (r**-12.0 - r**-6.0) + 1, 0.0)
    f = np.exp(-u / kT) - 1
    second = -2 * np.pi * np.trapezoid(f * r**2, r)
    step = r[1] - r[0]
    k = np.pi * np.arange(1, len(r) + 1) / (r[-1] + step)
    wave = 4 * np.pi * np.asarray(dst(f * r, type=1)) * step / 2 / k  # ∫ f e^{ikr}
    third = -(1 / 3) * np.trapezoid(wave**3 * k**2, k) / (2 * np.pi**2)
    assert np.isclose(third / second**2, 5 / 8, rtol=0.1)  # hard spheres
    few = 1 / count
    orders = second * density, (1 - 2 * few) * third * density**2 + 2 * few * (second * density) ** 2, 0.2869 * (second * density) ** 3
    expected = density * kT * (1 + (1 - few) * sum(orders))
    system = bm.mechanical(bm.Euclidean(3) ** count, potential=bm.weeks_chandler_andersen(), box=side)
    scheme = bm.Langevin(system, temperature=kT, friction=4.0)  # kinetic energies are forgotten sooner
    start = scheme.start(bm.random_packing(count, box=side, distance=1.05, seed=2), temperature=kT)
    observe = {"P": bm.time_average(bm.pressure, every=5)}
    result = bm.simulate(scheme, start, step=0.005, steps=2_000, burn_in=400, trajectories=128, seed=3, observe=observe)
    assert float(result.P.stderr) < 0.004 * expected
    assert abs(float(result.P.mean) - expected) < SIGMAS * float(result.P.stderr) + 0.001 * expected  # B₅ and what B₄ is off by


@pytest.mark.slow
def test_the_liquid_at_its_triple_density_has_the_published_equations_of_state():
    """ρ* = 0.8442 and T* = 1, 256 points cut at 3 and corrected: Kolafa & Nezbeda, and Johnson, Zollweg & Gubbins, who differ by 0.0145 and 0.007.

    What is allowed beside four standard errors is what the equations are off by, the uniform liquid beyond the cutoff and 256 points.
    """
    count, density, kT = 256, 0.8442, 1.0
    side = (count / density) ** (1 / 3)
    system = bm.mechanical(bm.Euclidean(3) ** count, potential=bm.lennard_jones(cutoff=(2.7, 3.0)), box=side)
    scheme = bm.Langevin(system, temperature=kT, friction=1.0)
    observe = {"U": bm.time_average(bm.potential_energy, every=20), "P": bm.time_average(bm.pressure, every=20)}
    start = scheme.start(bm.lattice("fcc", box=side, count=count), temperature=kT)
    result = bm.simulate(scheme, start, step=0.004, steps=12_000, burn_in=3_000, trajectories=16, seed=1, observe=observe)
    tail = bm.tail_correction(system)
    energy, pressure = float(result.U.mean) / count + tail.energy, float(result.P.mean) + tail.pressure
    errors = SIGMAS * float(result.U.stderr) / count, SIGMAS * float(result.P.stderr)
    for equation, of_energy, of_pressure in ((kolafa_nezbeda, 0.004, 0.03), (johnson_zollweg_gubbins, 0.02, 0.03)):
        published = equation(density, kT)
        assert abs(energy - published.energy) < errors[0] + of_energy
        assert abs(pressure - published.pressure) < errors[1] + of_pressure


def test_species_have_distributions_of_their_own_and_a_cut_run_counts_alike():
    system, x, side = _fluid()
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    names = ["A", "B"] * 16
    observe = {"g": bm.radial_distribution(cutoff=side / 2, bins=20, species=names, every=2)}
    settings = {"step": 0.005, "trajectories": 3, "seed": 1, "observe": observe}
    start = scheme.start(jnp.asarray(x), temperature=1.0)
    whole = bm.simulate(scheme, start, steps=60, **settings)
    blocks = bm.simulate(scheme, start, steps=60, block=1, **settings)
    assert list(whole.g.g.kind.values) == ["A-A", "A-B", "B-B"]
    assert np.array_equal(np.asarray(whole.g.g), np.asarray(blocks.g.g))
    # All neighbours of an A are As or Bs: those of both kinds together are those of all points.
    alike = bm.simulate(scheme, start, steps=60, **{**settings, "observe": {"g": bm.radial_distribution(cutoff=side / 2, bins=20, every=2)}})
    of_a, of_b = (np.asarray(whole.g.coordination)[pair].sum(0) for pair in ([0, 1], [1, 2]))
    assert np.allclose((of_a + of_b) / 2, np.asarray(alike.g.coordination)[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bm.radial_distribution(cutoff=-1.0), "positive length"),
        (lambda: bm.mechanical(bm.SO3(), box=3.0), "many points"),
        (lambda: bm.mechanical(bm.Euclidean(3) ** 4, potential=jnp.sum, box=3.0), "pair terms"),
        (lambda: bm.mechanical(bm.Euclidean(3) ** 4, potential=bm.lennard_jones(), box=3.0), "needs a cutoff"),
        (lambda: bm.yukawa([1.0, 2.0]), "one number"),
        (lambda: bm.lennard_jones(sigma=-1.0), "must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(BismutError, match=words):
        make()


def test_a_pressure_without_a_box_is_refused_before_the_run():
    system = bm.mechanical(bm.Euclidean(3) ** 4, potential=bm.lennard_jones())
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    start = scheme.start(jnp.asarray(lattice(1, 2.0)), temperature=1.0)
    for observer, words in ((bm.pressure, "closed periodic box"), (bm.radial_distribution(cutoff=1.0), "closed periodic box")):
        with pytest.raises(DomainError, match=words):
            bm.simulate(scheme, start, step=0.01, steps=1, trajectories=1, observe={"x": observer})


def test_the_tail_of_molecules_is_that_of_their_sites_whatever_their_charges():
    """∫_{R>c} ⟨u(|R + z′ − z|)⟩ d³R: by 200 000 places and directions, 4 % more than of centres. Charges in a medium or with waves add nothing."""
    rng, c, side, count, z = np.random.default_rng(1), 3.0, 8.0, 5, np.array([[0.3, 0, 0.4], [-0.2, 0, 0]])
    R = c / rng.uniform(0, 1, 200_000) ** (1 / 3)  # with density 3 c³/R⁴ beyond c
    turns = rng.normal(size=(2, len(R), 3))
    far = np.linalg.norm(R[:, None] * [0, 0, 1] + 0.5 * (turns / np.linalg.norm(turns, axis=-1, keepdims=True) * [[[1]], [[-1]]]).sum(0), axis=1)
    values = 4 * 0.7 * (far**-12 - far**-6) * 4 * np.pi * R**6 / (3 * c**3)
    mean, error = values.mean(), values.std() / np.sqrt(len(R))

    def tail(points, electrostatics, charges=(0.4, -0.4)):
        potential = bm.sites(points, charges=charges, epsilon=[0.7, 0.0], electrostatics=electrostatics, cutoff=(c - 1e-6, c))
        system = bm.rigid_bodies(mass=np.ones(count), inertia=np.ones((count, 3)), potential=potential, box=side)
        return bm.tail_correction(system)

    tails = [tail(z, bm.ReactionField()), tail(z, bm.Ewald(0.1)), tail(z, None, charges=0.0)]
    assert np.isclose(tails[0].energy, tails[1].energy, rtol=1e-12)
    assert np.isclose(tails[0].energy, tails[2].energy, rtol=1e-12)
    assert abs(tails[0].energy - 0.5 * count / side**3 * mean) < SIGMAS * 0.5 * count / side**3 * error
    assert tails[0].pressure == pytest.approx(tails[0].energy * count / side**3, rel=1e-12)
    centre = tail(np.zeros((2, 3)), bm.ReactionField()).energy
    assert np.isclose(centre, 8 / 3 * np.pi * 0.7 * count / side**3 * (c**-9 / 3 - c**-3), rtol=1e-5)
    assert tails[0].energy < 1.04 * centre < 0
    points = bm.mechanical(bm.Euclidean(3) ** count, potential=bm.lennard_jones(cutoff=c), box=side)
    bodies = bm.rigid_bodies(mass=np.ones(count), inertia=np.ones((count, 3)), potential=bm.lennard_jones(cutoff=c), box=side)
    assert bm.tail_correction(points) == bm.tail_correction(bodies)
    with pytest.raises(DomainError, match="orientations"):
        tail(z, None)
