"""Averages over draws are those of the density, within 4 standard errors of the frozen chain's own effective sample size.

Each number is compared at 4 standard errors, a false alarm in 16 000. Seeds are fixed. In `make test`, on one or two hundred chains: matrix Fisher on
SO(3), von Mises–Fisher on S², the density on a torus of mici's documentation, the rigid trimer and a curve by area, a network, and the other two
kernels, 16 numbers, of which one seed in 1000 would miss one. In `make measure`: these and all others with five hundred chains,
about 45 numbers, one seed in 350.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import iv

import bismut as bm
from bismut.samplers import diagnostics

SETTINGS = {"chains": 512, "draws": 200, "seed": 11}
FEW = {"chains": 128, "draws": 60, "burn_in": 80, "seed": 11, "progress": False}


def held(draws: bm.Draws, values: np.ndarray, exact: float) -> None:
    """Values (chain, draw) of a quantity have the exact mean, and chains agree on it: R̂² is 1 + τ/n for n draws in half a chain."""
    error = values.std() / np.sqrt(diagnostics.ess_mean(values))
    tau = values.size / diagnostics.ess_mean(values)
    assert diagnostics.rhat(values) ** 2 < 1 + 2 * max(tau, 1) / (values.shape[1] / 2)
    assert abs(values.mean() - exact) < 4 * error, f"{values.mean():.5f} ± {error:.5f}, exact {exact:.5f}\n{draws}"
    assert error < 0.05 * max(values.std(), 1e-3), "the error is small enough to tell"


@pytest.mark.parametrize(
    ("n", "settings"), [(2, FEW), pytest.param(2, SETTINGS, marks=pytest.mark.slow), pytest.param(5, SETTINGS, marks=pytest.mark.slow)]
)
def test_von_mises_fisher(n, settings):
    kappa, d = 2.5, n + 1
    draws = bm.sample(bm.Sphere(n), lambda x: kappa * x[0], **settings)
    held(draws, draws["x"][..., 0], iv(d / 2, kappa) / iv(d / 2 - 1, kappa))
    assert np.abs((draws["x"] ** 2).sum(-1) - 1).max() < 1e-10


@pytest.mark.slow
def test_bingham_on_the_sphere():
    b = np.array([3.0, -1.0, 0.5])
    draws = bm.sample(bm.Sphere(2), lambda x: x @ (jnp.asarray(b) * x), **SETTINGS)
    weight = lambda f, t: np.exp(b[0] * (np.sin(t) * np.cos(f)) ** 2 + b[1] * (np.sin(t) * np.sin(f)) ** 2 + b[2] * np.cos(t) ** 2) * np.sin(t)
    whole = dblquad(weight, 0, np.pi, 0, 2 * np.pi)[0]
    held(draws, draws["x"][..., 0] ** 2, dblquad(lambda f, t: weight(f, t) * (np.sin(t) * np.cos(f)) ** 2, 0, np.pi, 0, 2 * np.pi)[0] / whole)
    held(draws, draws["x"][..., 2] ** 2, dblquad(lambda f, t: weight(f, t) * np.cos(t) ** 2, 0, np.pi, 0, 2 * np.pi)[0] / whole)


@pytest.mark.slow
def test_bingham_on_the_five_sphere():
    """With eigenvalues in pairs, u_i = x² + y² of each pair are uniform on the simplex."""
    b = np.array([3.0, 0.0, -2.0])
    draws = bm.sample(bm.Sphere(5), lambda x: x @ (jnp.asarray(np.repeat(b, 2)) * x), **SETTINGS)
    weight = lambda v, u: np.exp(b[0] * u + b[1] * v + b[2] * (1 - u - v))
    whole = dblquad(weight, 0, 1, 0, lambda u: 1 - u)[0]
    held(draws, (draws["x"][..., :2] ** 2).sum(-1), dblquad(lambda v, u: u * weight(v, u), 0, 1, 0, lambda u: 1 - u)[0] / whole)


def test_matrix_fisher_on_rotations():
    """⟨R_kk⟩ for exp(tr FᵀR), F = diag s, from the integral of Bessel functions over u = R_kk."""
    s = np.array([3.0, 1.0, -0.5])
    draws = bm.sample(bm.SO3(), lambda R: jnp.sum(jnp.asarray(np.diag(s)) * R), **SETTINGS)
    for k in range(3):
        i, j = [m for m in range(3) if m != k]
        weight = lambda u, i=i, j=j, k=k: iv(0, (s[i] - s[j]) * (1 - u) / 2) * iv(0, (s[i] + s[j]) * (1 + u) / 2) * np.exp(s[k] * u)
        held(draws, draws["x"][..., k, k], quad(lambda u, w=weight: u * w(u), -1, 1)[0] / quad(weight, -1, 1)[0])


class Tilted(eqx.Module):
    """A normal density times that of a small network."""

    network: eqx.nn.MLP

    def __call__(self, x):
        return -0.5 * x @ x + 4 * self.network(x)


@pytest.mark.long
def test_an_equinox_module_is_a_density():
    """By machine code, against the sum over a grid."""
    density = Tilted(eqx.nn.MLP(1, "scalar", 6, 1, activation=jnp.tanh, key=jax.random.key(2)))
    draws = bm.sample(bm.Euclidean(1), density, mode="native", **FEW)
    x = np.linspace(-8, 8, 4001)
    weight = np.exp(np.asarray(jax.vmap(density)(x[:, None])))
    assert abs(weight @ x / weight.sum()) > 0.2  # the network matters
    held(draws, draws["x"][..., 0], weight @ x / weight.sum())
    held(draws, draws["x"][..., 0] ** 2, weight @ x**2 / weight.sum())
    assert draws.record.engine == "native"


@pytest.mark.slow
def test_plaquette_of_su2():
    beta = 1.7
    draws = bm.sample(bm.SU(2), lambda U: beta * jnp.trace(U[0]), **SETTINGS)
    held(draws, np.trace(draws["x_0"], axis1=2, axis2=3) / 2, iv(2, 2 * beta) / iv(1, 2 * beta))


@pytest.mark.slow
def test_matrix_bingham_on_frames():
    """exp tr XᵀBX on Stiefel(4, 2) depends on the plane alone, which is a pair of unit vectors (a, b): a sum of a_k b_k."""
    B = np.array([3.0, 1.0, 0.0, -1.0])
    draws = bm.sample(bm.Stiefel(4, 2), lambda X: jnp.sum(jnp.asarray(B)[:, None] * X * X), **SETTINGS)
    c = 0.5 * np.array([B[0] + B[1] - B[2] - B[3], B[0] + B[2] - B[1] - B[3], B[0] + B[3] - B[1] - B[2]])

    def average(of):
        def inner(f, t, weighted):
            b = np.array([np.sin(t) * np.cos(f), np.sin(t) * np.sin(f), np.cos(t)])
            r = np.linalg.norm(c * b)
            langevin = 1 / np.tanh(r) - 1 / r
            return np.sin(t) * np.sinh(r) / r * (np.dot(of, b * (c * b) / r * langevin) if weighted else 1.0)

        over = lambda weighted: dblquad(lambda f, t: inner(f, t, weighted), 0, np.pi, 0, 2 * np.pi, epsabs=1e-9)[0]
        return over(True) / over(False)

    diagonal = (draws["x"] ** 2).sum(-1)
    held(draws, diagonal[..., 0], (1 + average(np.ones(3))) / 2)
    held(draws, diagonal[..., 1], (1 + average(np.array([1.0, -1.0, -1.0]))) / 2)


LONG = [pytest.param("surface", 0.3210211, SETTINGS, marks=pytest.mark.slow), pytest.param("conditional", 1 / 3, SETTINGS, marks=pytest.mark.slow)]


@pytest.mark.long
@pytest.mark.parametrize(("measure", "exact", "settings"), [("surface", 0.3210211, FEW), *LONG])
def test_rigid_trimer(measure, exact, settings):
    """Two rigid bonds: by area cos θ has the weight √(4 − cos²θ), given the lengths of the bonds it is uniform."""

    def bonds(q):
        x = q.reshape(3, 3)
        return jnp.stack([jnp.sum((x[1] - x[0]) ** 2) - 1, jnp.sum((x[2] - x[1]) ** 2) - 1])

    centred = lambda q: -0.5 * jnp.sum(q.reshape(3, 3).mean(0) ** 2)
    draws = bm.sample(bm.Euclidean(9), centred, constraint=bonds, measure=measure, **settings)
    x = draws["x"].reshape(*draws["x"].shape[:2], 3, 3)
    held(draws, ((x[..., 0, :] - x[..., 1, :]) * (x[..., 2, :] - x[..., 1, :])).sum(-1) ** 2, exact)


CURVES = [("surface", lambda x: np.hypot(1, np.exp(x))), pytest.param("conditional", lambda x: 1.0, marks=pytest.mark.slow)]


@pytest.mark.long
@pytest.mark.parametrize(("measure", "weight"), CURVES, ids=["surface", "conditional"])
def test_a_curve_in_the_numbers_themselves(measure, weight):
    """s = eˣ with ρ = e^{−x²/2}: arc length in (x, s), not in the logarithms in which chains move, is √(1 + e^{2x}) dx; δ(s − eˣ) leaves dx."""
    space, curve = {"x": bm.Euclidean(1), "s": bm.Positive()}, lambda p: p["s"] - jnp.exp(p["x"][0])
    draws = bm.sample(space, lambda p: -0.5 * p["x"] @ p["x"], constraint=curve, measure=measure, **FEW)
    moment = lambda k: quad(lambda x: x**k * weight(x) * np.exp(-0.5 * x**2), -10, 10)[0]
    if measure == "surface":
        assert moment(1) / moment(0) == pytest.approx(0.684, abs=5e-4)
    held(draws, draws["x"][..., 0], moment(1) / moment(0))
    held(draws, draws["x"][..., 0] ** 2, moment(2) / moment(0))


@pytest.mark.slow
@pytest.mark.parametrize(("measure", "power"), [("surface", 1), ("conditional", 0)])
def test_density_on_a_torus(measure, power):
    """ρ = e^{x + z}: by area the angle of the tube has the weight R + r cos φ, by the conditional measure of the quartic none."""
    R, r = 1.0, 0.5
    quartic = lambda q: (q @ q + R**2 - r**2) ** 2 - 4 * R**2 * (q[0] ** 2 + q[1] ** 2)
    draws = bm.sample(bm.Euclidean(3), lambda q: q[0] + q[2], constraint=quartic, measure=measure, **SETTINGS)
    weight = lambda f: (R + r * np.cos(f)) ** power * iv(0, R + r * np.cos(f)) * np.exp(r * np.sin(f))
    expected = quad(lambda f: (R + r * np.cos(f)) * weight(f), 0, 2 * np.pi)[0] / quad(weight, 0, 2 * np.pi)[0]
    held(draws, np.hypot(draws["x"][..., 0], draws["x"][..., 1]), expected)


@pytest.mark.long
@pytest.mark.parametrize("settings", [FEW, pytest.param(SETTINGS, marks=pytest.mark.slow)], ids=["few", "many"])
def test_the_torus_of_mici(settings):
    """The density of mici's documentation, (1 + α sin 4θ cos φ)/(1 + r cos φ/R) by area, is 1 + α sin 4θ cos φ in the angles."""
    R, r, alpha = 1.0, 0.5, 0.9
    tube = lambda q: jnp.hypot(q[0], q[1]) - R

    def log_density(q):
        theta, phi = jnp.arctan2(q[1], q[0]), jnp.arctan2(q[2], tube(q))
        return jnp.log1p(alpha * jnp.sin(4 * theta) * jnp.cos(phi)) - jnp.log1p(r * jnp.cos(phi) / R)

    draws = bm.sample(bm.Euclidean(3), log_density, constraint=lambda q: tube(q) ** 2 + q[2] ** 2 - r**2, **settings)
    x, y, z = np.moveaxis(draws["x"], -1, 0)
    theta, phi = np.arctan2(y, x), np.arctan2(z, np.hypot(x, y) - R)
    for values, exact in ((np.sin(4 * theta) * np.cos(phi), alpha / 4), (np.cos(phi), 0.0), (np.cos(phi) ** 2, 0.5)):
        held(draws, values, exact)


@pytest.mark.slow
def test_eight_schools():
    """The marginal of τ by quadrature, the school effects being normal given τ."""
    y, sigma = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def log_density(p):
        mu, log_tau = p["mu"][0], p["log_tau"][0]
        theta = mu + jnp.exp(log_tau) * p["z"]
        prior = -0.5 * (mu / 5) ** 2 - jnp.log1p((jnp.exp(log_tau) / 5) ** 2) + log_tau - 0.5 * p["z"] @ p["z"]
        return prior - 0.5 * jnp.sum(((jnp.asarray(y) - theta) / jnp.asarray(sigma)) ** 2)

    space = {"mu": bm.Euclidean(1), "log_tau": bm.Euclidean(1), "z": bm.Euclidean(8)}
    draws = bm.sample(space, log_density, **SETTINGS)

    def posterior(tau):
        v = sigma**2 + tau**2
        precision = 1 / 25 + (1 / v).sum()
        mean = (y / v).sum() / precision
        return np.exp(-0.5 * (y**2 / v).sum() + 0.5 * precision * mean**2) / np.sqrt(v.prod() * precision) / (1 + tau**2 / 25), mean

    log_tau = lambda f: quad(lambda u: f(np.exp(u)) * np.exp(u), -12, 8, limit=400)[0]
    whole = log_tau(lambda tau: posterior(tau)[0])
    held(draws, draws["mu"][..., 0], log_tau(lambda tau: np.prod(posterior(tau))) / whole)
    held(draws, np.minimum(np.exp(draws["log_tau"][..., 0]), 20.0), log_tau(lambda tau: min(tau, 20.0) * posterior(tau)[0]) / whole)


@pytest.mark.slow
def test_a_hundred_correlated_numbers():
    n, rho = 100, 0.95
    covariance = rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))) * np.outer(*[np.linspace(0.5, 2, n)] * 2)
    P = jnp.asarray(np.linalg.inv(covariance))
    draws = bm.sample(bm.Euclidean(n), lambda x: -0.5 * x @ P @ x, chains=512, draws=100, seed=3)
    held(draws, draws["x"][..., 0] ** 2, covariance[0, 0])
    held(draws, draws["x"].sum(-1) ** 2, covariance.sum())
    held(draws, np.einsum("cdi,ij,cdj->cd", draws["x"], np.asarray(P), draws["x"]), n)


@pytest.mark.parametrize("settings", [FEW, pytest.param(SETTINGS, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("kernel", ["hmc", "metropolised"])
def test_other_kernels(kernel, settings):
    draws = bm.sample({"R": bm.SO3(), "x": bm.Euclidean(2)}, lambda p: 2 * p["R"][2, 2] - jnp.sum(p["x"] ** 4), kernel=kernel, thin=3, **settings)
    held(draws, draws["R"][..., 2, 2], 1 / np.tanh(2) - 0.5)
    fourth = lambda k: quad(lambda x: x**k * np.exp(-(x**4)), -5, 5)[0]
    held(draws, draws["x"][..., 0] ** 2, fourth(2) / fourth(0))


@pytest.mark.slow
def test_simplex_and_positive_definite_matrices():
    """Dirichlet's mean, and Wishart's: ⟨S⟩ = ν V."""
    alpha, nu, V = np.array([0.7, 2.0, 3.0]), 5.0, np.array([[1.0, 0.4], [0.4, 0.5]])
    inverse = jnp.asarray(np.linalg.inv(V))

    def log_density(p):
        S = p["S"]
        wishart = (nu - 3) / 2 * jnp.log(S[0, 0] * S[1, 1] - S[0, 1] ** 2) - 0.5 * jnp.sum(inverse * S)
        return jnp.asarray(alpha - 1) @ jnp.log(p["x"]) + wishart

    draws = bm.sample({"x": bm.Simplex(3), "S": bm.PositiveDefinite(2)}, log_density, **SETTINGS)
    held(draws, draws["x"][..., 0], alpha[0] / alpha.sum())
    held(draws, draws["S"][..., 0, 1], nu * V[0, 1])
    held(draws, draws["S"][..., 1, 1], nu * V[1, 1])


@pytest.mark.slow
def test_a_surface_in_matrices_and_shares():
    """S_00 = 1 + x_0² with ρ = e^{−tr S} by area: G Gᵀ = 1 + 4 x_0² · 2/3, because on the simplex |∇x_0|² = 2/3."""
    space = {"S": bm.PositiveDefinite(2), "x": bm.Simplex(3)}
    bound = lambda p: p["S"][0, 0] - 1 - p["x"][0] ** 2
    draws = bm.sample(space, lambda p: -jnp.trace(p["S"]), constraint=bound, **FEW)
    # dS_01 dS_11 over det S > 0 with S_00 = s leave √s e^{−s}, dx_1 leaves 1 − x; the area is √(G Gᵀ) δ(g) dS dx
    weight = lambda x: np.sqrt(1 + 4 * x**2 * 2 / 3) * np.sqrt(1 + x**2) * np.exp(-(x**2)) * (1 - x)
    held(draws, draws["x"][..., 0], quad(lambda x: x * weight(x), 0, 1)[0] / quad(weight, 0, 1)[0])


@pytest.mark.slow
@pytest.mark.parametrize("n", [3])
def test_uniform_on_special_unitary_matrices(n):
    """⟨|tr U|²⟩ = 1 and ⟨|U_11|²⟩ = 1/n under Haar's measure. A step of a chain takes most of a millisecond, so there are few of them."""
    draws = bm.sample(bm.SU(n), lambda U: 0.0 * U[0][0, 0], chains=64, draws=80, burn_in=60, leapfrogs=3, seed=2)
    trace = lambda part: np.trace(part, axis1=2, axis2=3)
    held(draws, trace(draws["x_0"]) ** 2 + trace(draws["x_1"]) ** 2, 1.0)
    held(draws, draws["x_0"][..., 0, 0] ** 2 + draws["x_1"][..., 0, 0] ** 2, 1 / n)
    assert np.abs(np.linalg.det(draws["x_0"] + 1j * draws["x_1"]) - 1).max() < 1e-9
