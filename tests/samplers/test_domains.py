"""Domains: random points lie on them, volume elements are determinants, and spaces obey their laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from bismut.samplers.domain import Domain, checked_point, domain_of
from bismut.samplers.surface import surface_of
from bismut.samplers.target import unit_target

LARGE = [pytest.param(domain, marks=pytest.mark.slow) for domain in (bm.Sphere(5), bm.SO(4), bm.SU(2), bm.SU(3))]


@pytest.mark.parametrize("domain", [bm.Sphere(2), bm.Stiefel(4, 2), *LARGE], ids=str)
def test_random_points_lie_on_the_surface(domain):
    q = jax.vmap(domain.random)(jax.random.split(jax.random.key(0), 50))
    assert np.abs(jax.vmap(domain.constraint)(q)).max() < 1e-12
    G = jax.vmap(jax.jacobian(domain.constraint))(q)
    assert np.linalg.svd(np.asarray(G), compute_uv=False).min() > 0.1  # independent constraints


@pytest.mark.parametrize(("domain", "dimension"), [(bm.Sphere(5), 5), (bm.Stiefel(4, 2), 5), (bm.SO(4), 6), (bm.SU(2), 3), (bm.SU(3), 8)], ids=str)
def test_as_many_freedoms_as_the_surface_has(domain, dimension):
    q = jax.eval_shape(domain.random, jax.random.key(1))
    assert domain.space.dim - jax.eval_shape(domain.constraint, q).size == dimension


@pytest.mark.slow
def test_points_are_what_they_are_called():
    U = [np.asarray(a) + 1j * np.asarray(b) for a, b in (d.point(d.random(jax.random.key(4))) for d in (bm.SU(2), bm.SU(3), bm.SU(4)))]
    assert all(np.abs(u @ u.conj().T - np.eye(len(u))).max() < 1e-12 and abs(np.linalg.det(u) - 1) < 1e-12 for u in U)
    R = np.asarray(bm.SO(5).point(bm.SO(5).random(jax.random.key(2))))
    assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-12)
    assert (bm.SO(2), bm.SO(3)) == (bm.SO2(), bm.SO3())


def test_a_unitary_matrix_of_determinant_minus_one_is_none():
    """Its determinant is as real as 1, but its phase is π."""
    flat = lambda U: jnp.asarray(np.stack([U, np.zeros_like(U)]).reshape(-1))
    assert np.abs(bm.SU(3).constraint(flat(np.diag([1.0, -1, -1])))).max() < 1e-15
    assert np.abs(bm.SU(3).constraint(flat(np.diag([-1.0, 1, 1])))).max() == pytest.approx(np.pi)


def _free_entries(domain, x):
    return x[:-1] if isinstance(domain, bm.Simplex) else x[np.tril_indices(len(x))]


@pytest.mark.parametrize("domain", [bm.Simplex(4), bm.PositiveDefinite(3)], ids=str)
def test_the_volume_element_is_a_determinant(domain):
    both = jax.jit(lambda q: (jax.jacobian(lambda q: _free_entries(domain, domain.point(q)))(q), domain.log_volume(q)))
    for seed in range(3):
        jacobian, volume = both(np.random.default_rng(seed).normal(size=domain.space.dim))
        constant = domain.n * np.log(2) if isinstance(domain, bm.PositiveDefinite) else 0.0
        assert float(volume) == pytest.approx(np.linalg.slogdet(jacobian)[1] - constant, abs=1e-11)


CHARTS = [bm.Positive((3,)), bm.Simplex(4), bm.PositiveDefinite(3)]


@pytest.mark.parametrize("domain", CHARTS, ids=str)
def test_the_gradient_of_a_chart_is_that_among_all_entries(domain):
    """a·b = ∂f/∂q (JᵀJ)⁻¹ ∂g/∂q, J the derivative of all entries of x; √det JᵀJ is the volume element but for a constant."""
    jacobian = jax.jacobian(lambda q: domain.point(q).reshape(-1))
    parts = jax.jit(lambda q, slopes: (jacobian(q), domain.log_volume(q), jax.vmap(lambda slope: domain.gradient(q, slope))(slopes)))
    constants = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q, slopes = rng.normal(size=domain.space.dim), rng.normal(size=(2, domain.space.dim))
        J, volume, (a, b) = parts(q, slopes)
        M = np.asarray(J.T @ J)
        assert np.sum(a * b) == pytest.approx(slopes[0] @ np.linalg.solve(M, slopes[1]), rel=1e-10)
        constants.append(0.5 * np.linalg.slogdet(M)[1] - float(volume))
    assert np.ptp(constants) < 1e-12


def test_what_an_area_adds_to_a_potential():
    """Of s = eˣ in (x, log s): ½ log(2 e^{2x}) − ½ log(1 + e^{2x}); a sphere beside it changes nothing, nor does one alone."""
    space = {"x": bm.Euclidean(1), "s": bm.Positive(), "n": bm.Sphere(2)}
    _, area = surface_of(domain_of(space), lambda p: p["s"] - jnp.exp(p["x"][0]), "surface")
    for x in (-1.3, 0.4, 2.0):
        added = jax.jit(area)((jnp.array([x]), jnp.array([x]), jnp.array([0.0, 0.6, 0.8])))
        assert float(added) == pytest.approx(0.5 * np.log(2 * np.exp(2 * x) / (1 + np.exp(2 * x))), abs=1e-13)
    assert surface_of(domain_of(bm.Sphere(2)), lambda x: x[0], "surface")[1] is None


class Unfinished(bm.Positive):
    """A chart of somebody's own with a volume and no lengths, as `Positive` would be without its gradient."""

    gradient = Domain.gradient


def test_an_area_without_lengths_is_refused():
    g = lambda p: p["s"] - jnp.exp(p["x"][0])
    space = {"x": bm.Euclidean(1), "s": Unfinished()}
    with pytest.raises(bm.errors.DomainError, match=r"needs its gradient\(q, slope\).*measure='conditional'"):
        surface_of(domain_of(space), g, "surface")
    assert surface_of(domain_of(space), g, "conditional")[1] is not None
    assert surface_of(domain_of({"x": bm.Euclidean(2), "R": bm.SO3()}), lambda p: p["x"] @ p["x"] - 1, "surface")[1] is None


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_numbers_of_any_shape(shape):
    q = np.random.default_rng(1).normal(size=int(np.prod(shape)))
    assert bm.Real(shape).point(q).shape == bm.Positive(shape).point(q).shape == shape
    slopes = jax.jacobian(lambda q: bm.Positive(shape).point(q).reshape(-1))(jnp.asarray(q))
    assert float(bm.Positive(shape).log_volume(q)) == pytest.approx(np.linalg.slogdet(slopes)[1], abs=1e-12)
    assert bm.Real(shape).log_volume(q) == 0


DOMAINS = [bm.Real(), bm.Positive((2, 3)), bm.Simplex(4), bm.PositiveDefinite(3), bm.Sphere(2), bm.Stiefel(4, 2), *LARGE[1:]]
JOINT = {"R": bm.SO3(), "s": bm.Positive(), "X": bm.Stiefel(3, 2), "z": bm.Circle() * bm.Euclidean(2)}


@pytest.mark.parametrize("domain", [*DOMAINS, domain_of(JOINT)], ids=str)
def test_coordinates_of_a_point(domain):
    q, x, back = jax.jit(lambda key: (q := domain.random(key), x := domain.point(q), domain.coordinates(x)))(jax.random.key(3))
    assert jax.tree.all(jax.tree.map(lambda a, b: np.abs(a - b).max() < 1e-12, q, back))
    assert checked_point(domain, x, "x") == ()
    assert checked_point(domain, jax.tree.map(lambda leaf: np.stack([leaf] * 5), x), "x") == (5,)


def begin(space, start, **more):
    bm.sample(space, lambda x: 0.0 * jnp.sum(jax.tree.leaves(x)[0]), chains=4, start=start, **more)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: begin(bm.Stiefel(4, 2), np.ones(8)), r"shape \(8,\), but a point of Stiefel\(n=4, k=2\), .*, has \(4, 2\)"),
        (lambda: begin(bm.Stiefel(4, 2), np.ones((4, 2))), "off the surface"),
        (lambda: begin(bm.Simplex(3), np.ones(3)), "none of Simplex"),
        (lambda: begin(bm.PositiveDefinite(2), -np.eye(2)), "none of PositiveDefinite"),
        (lambda: begin(bm.Positive(), -1.0), "none of Positive"),
        (lambda: begin(JOINT, np.eye(3)), "dictionary of R, s, X, z"),
        (lambda: begin(JOINT, {"R": np.eye(3), "s": 1.0}), "got one of R, s"),
        (lambda: begin({"R": bm.SO3(), "s": bm.Positive()}, {"R": np.eye(3), "s": np.ones(5)}), "different leading axes"),
        (lambda: begin(bm.SU(2), np.eye(2)), "2 arrays"),
        (lambda: bm.malt(bm.Stiefel(3, 2), lambda X: X[0, 0], step=0.1).init(jnp.ones(6)), "position has shape"),
        (lambda: bm.malt(bm.Sphere(2), lambda x: x[0], step=0.1).init(jnp.ones((5, 3))), "vmap"),
        (lambda: bm.Real(3), "tuple of whole numbers"),
    ],
)
def test_points_that_are_none_are_refused(make, message):
    with pytest.raises(bm.errors.BismutError, match=message):
        make()


def test_points_of_charts():
    x = np.asarray(bm.Simplex(4).point(jnp.array([300.0, -2.0, 1.0])))
    assert x.sum() == pytest.approx(1.0, abs=1e-14)
    S = np.asarray(bm.PositiveDefinite(3).point(jnp.arange(6.0) / 3))
    assert np.linalg.eigvalsh(S).min() > 0


@pytest.mark.parametrize("domain", [bm.Stiefel(3, 2), bm.PositiveDefinite(2)], ids=str)
def test_chains_move_on_spaces_that_obey_their_laws(domain):
    assert bm.check_space(domain_of(domain).space).ok


def test_scales_are_undone():
    target = unit_target(lambda p: -jnp.sum(p["x"] ** 2), domain_of({"R": bm.SO3(), "x": bm.Euclidean(3)}))
    root = np.array([[2.0, 0, 0], [1, 3, 0], [0, -1, 0.5]])
    target = type(target)(target.density, target.domain, (None, jnp.asarray(root)), target.spreads)
    q = (jnp.eye(3), jnp.array([0.3, -1.0, 2.0]))
    there = target.unscaled(q)
    assert np.allclose(there[1], root @ q[1], atol=1e-14)
    assert np.allclose(target.scaled_one(there)[1], q[1], atol=1e-14)
    assert np.allclose(target.scaled((np.eye(3)[None], np.asarray(there[1])[None]))[1][0], q[1], atol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bm.Stiefel(2, 3), "k ≤ n"),
        (lambda: bm.Stiefel(3, 3), r"in two pieces.* Use SO\(3\)"),
        (lambda: bm.Sphere(0), "n ≥ 1"),
        (lambda: bm.sample([1], lambda x: x), "dictionary"),
        (lambda: bm.sample(lambda x: -x @ x, bm.Euclidean(2)), "space is the first argument, the density the second"),
        (lambda: bm.sample(bm.SO3, lambda R: R[0, 0]), r"the class SO3\. Call it: SO3\("),
        (lambda: bm.sample({"a": 3}, lambda p: p["a"]), r"space\['a'\] is to be a space .*, got 3"),
        (lambda: bm.sample({}, lambda p: 0.0), "It is empty"),
        (lambda: bm.sample({"a": bm.Real(), "b": bm.Real()}, lambda a, b: a * b), "one argument, a dictionary"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, seed=jax.random.key(0)), "seed must be a whole number"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, constraint=bm.Sphere(1)), "in place of the space"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, constraint=3.0), "constraint must be a function of a point"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, constraint=lambda x: x @ x - 1, measure=None), "measure must be 'surface'"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, kernel=["malt"]), "kernel must be one of 'malt'"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, scaling="yes"), "scaling must be True or False"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: x), "one real number"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: x["a"]), "log_density fails"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, kernel="mala"), "no kernel"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, kernel="nuts"), "trees make the work"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x, level: -level * x @ x), "give ladder="),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, chains=1), "chains"),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, measure="conditional"), "constraint="),
        (lambda: bm.sample(bm.Euclidean(2), lambda x: -x @ x, constraint=lambda x: x @ x - 1, measure="area"), "no measure"),
        (lambda: bm.sample(bm.Euclidean(1), lambda x: jnp.log(-1 - x[0] ** 2), chains=4), "not finite"),
        (lambda: bm.sample(bm.Euclidean(1), lambda x: -x @ x, chains=4, start=np.zeros((3, 1))), "4 chains"),
    ],
)
def test_wrong_input_is_refused(make, message):
    with pytest.raises(bm.errors.BismutError, match=message):
        make()


@pytest.mark.parametrize(("space", "words"), [({}, "It is empty: name a parameter"), ({1: bm.Real()}, "Names are text, and 1 is not"), (3, "got 3")])
def test_what_is_no_domain_is_refused_in_words(space, words):
    with pytest.raises(BismutError, match=words):
        domain_of(space)
