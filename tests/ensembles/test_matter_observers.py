"""Observers of matter: what they report in one pass is what stored configurations say, and what is known in closed form.

Statistical tests fix their seed and allow four standard errors: a false alarm of 6e-5 each.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import bismut as bm
from bismut.errors import BismutError
from bismut.figures.runs import pictures

N, SIDE = 12, 5.0
SPECIES = ["A", "B", "B"] * 4


def rotations(count: int, seed: int = 1) -> np.ndarray:
    return np.asarray(jax.vmap(bm.SO3().random)(jax.random.split(jax.random.key(seed), count)))


@functools.cache
def bodies() -> bm.Brownian:
    """Free ones: their observers are told of a box."""
    return bm.Brownian(bm.rigid_bodies(mass=np.ones(N), inertia=np.full((N, 3), 0.4)), temperature=1.0)


@functools.cache
def result(block: int | None = None) -> bm.Result:
    scheme = bodies()
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3)[:N] * SIDE / 3
    observe = {
        "whole": bm.paths(range(3), every=10),
        "S": bm.structure_factor(largest=4.0, species=SPECIES, box=SIDE, every=10),
        "wide": bm.structure_factor(largest=4.0, bins=3, box=SIDE, every=10),
        "order": bm.orientational_order(every=10),
        "along": bm.orientational_order(axis=(1.0, 0.0, 0.0), director=(0.0, 3.0, 4.0), every=10),
        "g": bm.radial_distribution(cutoff=2.5, bins=8, species=SPECIES, box=SIDE, every=10),
        "angles": bm.radial_distribution(
            cutoff=2.5, bins=8, species=SPECIES, box=SIDE, every=10, directions=lambda state: state.q[1][:, :, 2], angles=4
        ),
    }
    start = scheme.start((grid, rotations(N)))
    return bm.simulate(
        scheme, start, step=0.01, steps=100, trajectories=3, seed=3, every=50, observe=observe, **({} if block is None else {"block": block})
    )


@functools.cache
def configurations() -> tuple[np.ndarray, np.ndarray]:
    """Places and orientations, (trajectories, looks, N, ...)."""
    return np.asarray(result().whole.q0), np.asarray(result().whole.q1)


def test_a_structure_factor_is_the_square_of_density_modes():
    x, _ = configurations()
    S = result().S
    most = int(4.0 * SIDE / (2 * np.pi))
    n = np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    n = n[(n != 0).any(1) & (np.linalg.norm(n, axis=1) * 2 * np.pi / SIDE <= 4.0)]
    modes = np.exp(-2j * np.pi / SIDE * x @ n.T)  # (trajectories, looks, N, waves)
    names = np.array(SPECIES)
    rho = {one: modes[:, :, names == one].sum(2) for one in "AB"}
    squares = (n**2).sum(1)
    assert S.wave_vectors.values.tolist() == [int((squares == s).sum()) for s in sorted(set(squares))]
    np.testing.assert_allclose(S.S.k.values, 2 * np.pi / SIDE * np.sqrt(sorted(set(squares))), rtol=1e-12)
    for kind, (a, b) in zip(S.S.kind.values, (("A", "A"), ("A", "B"), ("B", "B")), strict=True):
        values = (rho[a] * rho[b].conj()).real / np.sqrt((names == a).sum() * (names == b).sum())
        expected = [values[..., squares == s].mean() for s in sorted(set(squares))]
        np.testing.assert_allclose(S.S.sel(kind=kind).values, expected, rtol=1e-9, atol=1e-12)
    # Of all points: √(N_a N_b) S_ab added up, and shells of a width joined.
    total = sum(np.abs(rho["A"] + rho["B"]).ravel() ** 2) / N / rho["A"].size
    wide = result().wide
    assert np.isclose((wide.S.values[0] * wide.wave_vectors.values).sum() / len(n), total, rtol=1e-9)


def test_a_crystal_scatters_into_its_peaks_and_an_ideal_gas_everywhere_alike():
    """Of n³ points on a cubic lattice S = N where k is a reciprocal vector, and 0 elsewhere. Of independent points S = 1 and its variance is 1."""
    n, side = 3, 6.0
    grid = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3) * side / n
    system = bm.mechanical(bm.Euclidean(3) ** n**3)
    scheme = bm.Verlet(system)
    observe = {"S": bm.structure_factor(largest=2 * np.pi / side * n, box=side, every=1)}
    crystal = bm.simulate(scheme, scheme.start(jnp.asarray(grid), momentum=jnp.zeros((n**3, 3))), step=0.1, steps=1, trajectories=1, observe=observe)
    S, k = crystal.S.S.values[0], crystal.S.S.k.values
    np.testing.assert_allclose(S[:-1][np.abs(k[:-1] - k[-1]) > 1e-9], 0.0, atol=1e-20)
    assert np.isclose(S[-1], 27.0 * 6 / int(crystal.S.wave_vectors.values[-1]), rtol=1e-12)  # 6 of the shell n² = 9 are reciprocal vectors
    count = 2000
    x = np.random.default_rng(7).uniform(0, side, (count, n**3, 3))
    gas = bm.simulate(scheme, scheme.start(jnp.asarray(x), momentum=jnp.zeros_like(x)), step=0.1, steps=1, trajectories=count, observe=observe)
    waves = gas.S.wave_vectors.values / 2
    assert np.all(np.abs(gas.S.S.values[0] - 1) < 4 / np.sqrt(count * waves))
    np.testing.assert_allclose(gas.S.stderr.values[0], 1 / np.sqrt(count * waves), rtol=0.3)


def test_orientational_order_is_that_of_the_tensor():
    _, R = configurations()
    u, v = R[..., 2], R[..., 0]
    p, Q = u.mean(2), (3 * np.einsum("tlni,tlnj->tlij", u, u) / N - np.eye(3)) / 2
    order = result().order
    np.testing.assert_allclose(order.polarisation.values, p.mean((0, 1)), atol=1e-12)
    np.testing.assert_allclose(order.nematic.values, Q.mean((0, 1)), atol=1e-12)
    assert np.isclose(float(order.P1), np.linalg.norm(p, axis=-1).mean(), rtol=1e-10)
    assert np.isclose(float(order.P2), np.linalg.eigvalsh(Q)[..., -1].mean(), rtol=1e-10)
    cosine = v @ np.array([0.0, 0.6, 0.8])
    assert np.isclose(float(result().along.P1), cosine.mean(), atol=1e-12)
    assert np.isclose(float(result().along.P2), (1.5 * cosine**2 - 0.5).mean(), atol=1e-12)


def test_nematic_order_of_known_directions():
    """1 of parallel and antiparallel ones, 1/4 of a circle of them, 0 of three perpendicular ones; any eigenvalue, against LAPACK."""
    axis = np.array([1.0, -2.0, 0.5])
    assert np.isclose(float(bm.nematic_order(np.array([axis, -3 * axis, axis]))), 1.0, rtol=1e-12)
    turn = np.linspace(0, 2 * np.pi, 13)[:-1]
    circle = np.stack([np.cos(turn), np.sin(turn), 0 * turn], 1)
    assert np.isclose(float(bm.nematic_order(circle)), 0.25, rtol=1e-12)
    assert np.isclose(float(bm.nematic_order(circle[:, :2])), 0.0, atol=1e-12)
    assert float(bm.nematic_order(np.eye(3))) == pytest.approx(0.0, abs=1e-12)
    rng = np.random.default_rng(0)
    for d in (2, 3):
        u = rng.normal(size=(9, d))
        assert np.isclose(float(bm.nematic_order(u)), np.linalg.eigvalsh(np.asarray(bm.nematic_tensor(u)))[-1], rtol=1e-10)


def test_pairs_by_angle_are_those_of_all_configurations():
    x, R = configurations()
    u, names = R[..., 2].reshape(-1, N, 3), np.array(SPECIES)
    r = x.reshape(-1, N, 1, 3) - x.reshape(-1, 1, N, 3)
    r = np.linalg.norm(r - SIDE * np.round(r / SIDE), axis=-1)
    cosine, other = np.einsum("cik,cjk->cij", u, u), ~np.eye(N, dtype=bool)
    angles = result().angles
    shells = 4 / 3 * np.pi * np.diff(np.linspace(0, 2.5, 9) ** 3)
    for kind, (a, b) in zip(angles.g.kind.values, (("A", "A"), ("A", "B"), ("B", "B")), strict=True):
        mask = other & (names[:, None] == a) & (names == b)
        counts = np.histogram2d(r[:, mask].ravel(), cosine[:, mask].ravel(), bins=(8, 4), range=((0, 2.5), (-1, 1)))[0]
        ideal = (names == a).sum() * ((names == b).sum() - (a == b)) * len(x.reshape(-1, N, 3)) / SIDE**3
        np.testing.assert_allclose(angles.g.sel(kind=kind).values, counts / (ideal * shells[:, None] / 4), rtol=1e-12)
    np.testing.assert_allclose(angles.g.values.mean(2), result().g.g.values, rtol=1e-12)
    np.testing.assert_allclose(angles.coordination.values, result().g.coordination.values, rtol=1e-12)


def test_energies_of_terms_add_up_and_see_the_box():
    """Each is that of the term in the box, and their sum is U; a plain function is one term."""
    parts = (bm.soft_spheres(0.8, cutoff=2.4), 0.5 * bm.lennard_jones(cutoff=2.2), bm.harmonic_trap(0.3))
    system = bm.mechanical(bm.Euclidean(3) ** 4, potential=parts[0] + parts[1] + parts[2], box=SIDE)
    scheme = bm.Verlet(system)
    x = jnp.array([[0.1, 0.2, 0.3], [1.5, 0.0, 0.1], [4.6, 0.3, 4.8], [3.0, 3.0, 2.5]])
    start = scheme.start(x, momentum=jnp.zeros((4, 3)))
    observe = {"terms": bm.energy_terms, "U": bm.potential_energy}
    run = bm.simulate(scheme, start, step=0.001, steps=2, trajectories=1, observe=observe)
    assert bm.energy_terms.names(scheme) == ["soft spheres", "Lennard-Jones", "harmonic trap"]
    first = [float(part.inside((SIDE,) * 3)(x)) for part in parts[:2]] + [float(parts[2](x))]
    np.testing.assert_allclose(run.terms.mean.values[0], first, rtol=1e-10)
    np.testing.assert_allclose(run.terms.mean.values.sum(1), run.U.mean.values, rtol=1e-12)
    assert not np.isclose(first[0], float(parts[0](x)))  # the box is seen
    pendulum = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: 3.0 * q[0] ** 2))
    assert np.asarray(bm.energy_terms(pendulum, pendulum.start(jnp.array([2.0]), momentum=jnp.zeros(1)))).tolist() == [12.0]


def test_a_run_in_blocks_reports_the_same():
    whole, cut = result(), result(block=1)
    for name in ("S", "wide", "order", "along", "angles"):
        a, b = whole[name].dataset(), cut[name].dataset()
        for kind in a:
            np.testing.assert_allclose(a[kind].values, b[kind].values, rtol=1e-9, atol=1e-12, err_msg=f"{name} {kind}")


def test_there_is_a_picture_of_each():
    how = {"scheme": "Verlet", "space": "E", "trajectories": 3, "step": 0.1, "steps": 20, "seed": 3, "sweep": None}
    tree = xarray.DataTree.from_dict({name: result()[name].dataset() for name in ("S", "g", "angles")})
    drawable = pictures(tree, how)
    assert set(drawable) == {"S", "g", "angles"}
    plt = pytest.importorskip("matplotlib.pyplot")
    for name, curves in (("S", 3), ("g", 3), ("angles", 0)):
        figure = plt.figure()
        drawable[name].draw(figure)
        assert sum(len(axis.lines) for axis in figure.axes) >= curves
        if name == "g":  # neighbours under their distribution, at the ends of the bins
            upper, lower = figure.axes
            assert upper.get_ylabel().startswith("g(r)")
            assert lower.get_ylabel() == "neighbours within r"
            for number in range(3):
                np.testing.assert_array_equal(lower.lines[number].get_ydata(), result().g.coordination.values[number])
                np.testing.assert_array_equal(lower.lines[number].get_xdata(), result().g.edges.values[1:])
        plt.close(figure)


@pytest.mark.parametrize(
    ("observer", "words"),
    [
        (lambda: bm.structure_factor(largest=3.0), "needs a closed periodic box"),
        (lambda: bm.structure_factor(largest=0.1, box=SIDE), "shortest wave vector"),
        (lambda: bm.structure_factor(largest=1e3, box=SIDE), "more than 20000 wave vectors"),
        (lambda: bm.structure_factor(largest=3.0, box=SIDE, species=[1, 2]), "each of the 12 points"),
        (lambda: bm.orientational_order(lambda state: state.q[0][:, 0]), "needs directions"),
        (lambda: bm.orientational_order(director=(1.0, 0.0)), "must have 3 components"),
        (lambda: bm.radial_distribution(cutoff=2.0, box=SIDE, directions=lambda state: state.q[0][:2]), "one vector for each of 12"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_run(observer, words):
    scheme = bodies()
    start = scheme.start((np.zeros((N, 3)), rotations(N)))
    with pytest.raises(BismutError, match=words):
        bm.simulate(scheme, start, step=0.01, steps=1, trajectories=1, observe={"x": observer()})


def test_run_files_name_them():
    from bismut.cli.runs.prepare import prepare

    box = [6.0, 6.0, 6.0]
    observe = {
        "order": {"kind": "orientational_order", "axis": [1.0, 0.0, 0.0], "director": [0.0, 0.0, 1.0]},
        "S": {"kind": "structure_factor", "largest": 3.0, "box": box, "species": ["A", "B", "B"]},
        "g": {"kind": "radial_distribution", "cutoff": 2.0, "bins": 10, "box": box, "directions": "orientation", "angles": 5},
        "terms": {"of": "energy_terms"},
    }
    ready = prepare({"system": {"name": "magnetic-dipoles"}, "observe": observe}, {})
    assert set(ready.observe) == set(observe)
    assert ready.observe["g"].angles == 5
    assert ready.observe["S"].species == ("A", "B", "B")


def test_sites_of_bodies_that_do_not_know_of_each_other_have_g_of_one():
    """Pairs within bodies count neither as pairs nor as what an ideal gas would have: of N_a N_b, those of one body are taken off."""
    bodies, side, count = 2, 10.0, 1000
    gas = bm.mechanical(bm.Euclidean(3) ** (3 * bodies))
    centres = np.random.default_rng(0).uniform(0, side, (count, bodies, 1, 3))
    x = (centres + np.array([[0.1, 0, 0], [-0.1, 0, 0], [0, 0.2, 0]])).reshape(count, -1, 3)
    scheme = bm.Verlet(gas)
    g = bm.radial_distribution(cutoff=5.0, bins=2, box=side, species=["A", "B", "B"] * bodies, sites_per_body=3, every=1)
    run = bm.simulate(scheme, scheme.start(x, momentum=np.zeros_like(x)), step=1e-6, steps=1, trajectories=count, seed=1, observe={"g": g})
    found, error = run.g.g.values[:, 1], run.g.stderr.values[:, 1]  # for A-A, A-B, B-B
    assert np.all(np.abs(found - 1) < 4 * error)
    assert np.all(error < 0.06)  # 1/2 would be 8 errors away


@pytest.mark.parametrize(("d", "each", "kinds"), [(3, 1, 1), (3, 3, 2), (2, 1, 3), (1, 2, 2)])
def test_pairs_that_are_listed_and_pairs_that_are_counted_are_the_same(monkeypatch, d, each, kinds):
    """Count for count, of points at random and of a lattice, whose distances are ends of bins, in all dimensions and for all kinds."""
    from bismut.ensembles.observers import radial_distribution as module

    n, side = 2 * 3 * 8 if d == 1 else 6**d, 3.0
    grid = np.stack(np.meshgrid(*[np.arange(round(n ** (1 / d))) * side / round(n ** (1 / d))] * d, indexing="ij"), -1).reshape(-1, d)
    species = tuple(["A", "B", "C"][:kinds] * n)[:n]
    one = bm.radial_distribution(cutoff=1.5, bins=30, species=species, box=(side,) * d, sites_per_body=each)
    for x in (np.random.default_rng(0).normal(size=(n, d)) * side, grid, np.zeros((n, d))):
        listed = one._count(x)
        assert listed.dtype == np.int64
        assert listed.shape == (kinds * (kinds + 1) // 2, 30)
        with monkeypatch.context() as few:
            few.setattr(module, "_MOST_PAIRS", -1)
            np.testing.assert_array_equal(one._count(x), listed)


def test_errors_of_coordination_numbers_are_those_between_groups():
    """Pairs up to r are summed in each of the 16 groups before groups are compared: bins of one configuration are correlated."""
    n, count, side = 5, 64, 4.0
    x = np.random.default_rng(1).uniform(0, side, (count, n, 2))
    gas = bm.Verlet(bm.mechanical(bm.Euclidean(2) ** n))
    g = bm.radial_distribution(cutoff=2.0, bins=4, box=side, every=1)
    run = bm.simulate(gas, gas.start(x, momentum=np.zeros_like(x)), step=1e-6, steps=1, trajectories=count, seed=1, observe={"g": g})
    r = x[:, :, None] - x[:, None]
    r = np.linalg.norm(r - side * np.round(r / side), axis=-1)
    within = ((r[..., None] < run.g.edges.values[1:]) & (r[..., None] > 0)).sum((1, 2)) / n
    groups = within.reshape(-1, 16, 4).mean(0)
    np.testing.assert_allclose(run.g.coordination.values[0], groups.mean(0), rtol=1e-12)
    np.testing.assert_allclose(run.g.coordination_stderr.values[0], groups.std(0, ddof=1) / 4, rtol=1e-9)
