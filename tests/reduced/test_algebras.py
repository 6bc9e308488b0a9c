"""Algebras by structure constants and by matrices: the retraction's identities, brackets, Casimirs of any path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from bismut.findings.structure import poisson_defect
from bismut.gallery.sine_euler import diagonals, inverse_laplacian, sine_euler, start, stream
from bismut.programs.evaluation import evaluate
from bismut.spaces import poisson_tensor

LEVI_CIVITA = np.zeros((3, 3, 3))
for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    LEVI_CIVITA[i, j, k], LEVI_CIVITA[j, i, k] = 1.0, -1.0
HEISENBERG = np.zeros((3, 3, 3))
HEISENBERG[0, 1, 2], HEISENBERG[1, 0, 2] = 1.0, -1.0
ALGEBRAS = {"so(4)": bm.so(4), "sl(3)": bm.sl(3), "su(3)": bm.su(3), "Heisenberg": bm.structure_constants(HEISENBERG, "Heisenberg")}
every = pytest.mark.parametrize("name", ALGEBRAS)


def some(algebra: bm.Group, seed: int, size: float = 1.0):
    like = np.asarray(algebra.zero())
    return jnp.asarray(size * np.random.default_rng(seed).normal(size=like.shape))


def energy(mu):
    flat = jnp.ravel(mu)
    return 0.5 * flat @ (flat * jnp.linspace(0.5, 1.5, flat.size)) + 0.1 * jnp.sin(flat[0] - flat[-1])


def noisy(algebra: bm.Group) -> bm.System:
    return bm.LiePoisson(algebra, energy, noise=lambda mu: jnp.array([0.2 * jnp.ravel(mu)[0] * jnp.ravel(mu)[1], 0.3 * jnp.cos(jnp.ravel(mu)[2])]))


def test_structure_constants_of_rotations_are_those_of_rotations():
    """ε_ijk as structure constants, against the closed forms of SO3("exp")."""
    mine, theirs = bm.structure_constants(LEVI_CIVITA), bm.SO3("exp")
    x, mu = jnp.array([0.3, -0.5, 0.7]), jnp.array([0.2, 0.9, -0.4])
    for verb in ("coadjoint", "dtau_inv_adjoint", "dtau_inv", "ad_star", "bracket"):
        a, b = (evaluate(lambda x, mu, g=g, verb=verb: getattr(g, verb)(x, mu), x, mu) for g in (mine, theirs))
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-15, err_msg=verb)


@every
def test_the_coadjoint_action_joins_the_ends_of_a_step(name):
    """Ad*_{τ(x)} (dτ⁻¹_x)* μ = (dτ⁻¹_{−x})* μ, and ⟨ad*_x μ, y⟩ = ⟨μ, [x, y]⟩: what the reduced action needs of an algebra."""
    algebra = ALGEBRAS[name]
    x, y, mu = some(algebra, 1, 0.2), some(algebra, 2), some(algebra, 3)

    def sides(x, y, mu):
        there = algebra.coadjoint(x, algebra.dtau_inv_adjoint(x, mu)), algebra.dtau_inv_adjoint(-x, mu)
        paired = jnp.sum(algebra.ad_star(x, mu) * y), jnp.sum(mu * algebra.bracket(x, y))
        known = algebra.Ad_star(algebra.tau(x), mu), algebra.coadjoint(x, mu)
        tangent = jnp.sum(algebra.dtau_inv_adjoint(x, mu) * y), jnp.sum(mu * algebra.dtau_inv(x, y))
        return there, paired, known, tangent

    for a, b in evaluate(sides, x, y, mu):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-14)


@every
def test_casimirs_are_what_the_bracket_makes_invariant(name):
    system = noisy(ALGEBRAS[name])
    mu = some(ALGEBRAS[name], 4)
    B = evaluate(lambda mu: poisson_tensor(system.space, (), mu), mu)
    assert system.invariants
    for casimir in system.invariants:
        slope = evaluate(jax.jacfwd(lambda z, c=casimir: jnp.atleast_1d(system.invariant(c, bm.State((), z)))), mu)
        slope = np.asarray(slope).reshape(len(slope), -1)
        np.testing.assert_allclose(np.asarray(B) @ slope.T, 0, atol=1e-11)


@every
def test_steps_are_poisson_maps(name):
    """Also where the equation is iterated, not solved by Newton's method."""
    system = noisy(ALGEBRAS[name])
    state = bm.State((), some(ALGEBRAS[name], 5, 0.7))
    defect, _ = evaluate(lambda z: poisson_defect(bm.HamiltonianMidpoint(system), z, 0.05, jnp.array([0.3, -0.4]), 0.0), state)
    assert float(defect) < 1e-11


@pytest.mark.parametrize("name", ["su(3)", pytest.param("so(4)", marks=pytest.mark.slow)])
def test_traces_of_powers_are_kept_to_round_off(name):
    """10⁵ noisy steps of 8 trajectories: 1e−12, relative."""
    scheme = bm.HamiltonianMidpoint(noisy(ALGEBRAS[name]))
    mu = some(ALGEBRAS[name], 6)
    observe = {"traces": bm.invariant("traces")}
    run = bm.simulate(
        scheme,
        scheme.start(momentum=mu),
        step=0.05,
        steps=100_000,
        trajectories=8,
        seed=1,
        observe=observe,
        every=20_000,
        mode="native",
        progress=False,
    )
    assert run.outcome.ok
    first = np.asarray(scheme.system.invariant("traces", bm.State((), mu)))
    for part in (run["traces"].max, run["traces"].min):
        assert np.abs(np.asarray(part) - first).max() < 1e-12 * (1 + np.abs(first).max())


def test_the_sine_bracket_tends_to_the_poisson_bracket():
    """[T_m, T_n] ∝ sin(π m × n/N)-combinations of T_{m±n}: the commutator of two waves is made of their sum and their difference alone, and P =
    Δ⁻¹W divides
    each wave by |n|²."""
    N = 8
    a, b = (jnp.asarray(stream(N, n)) for n in ((1, 0), (1, 2)))
    found = np.asarray(evaluate(bm.su(N).bracket, a, b)).ravel()
    waves = np.stack([stream(N, n, phase).ravel() for n in ((2, 2), (0, 2)) for phase in (0.0, np.pi / 2)])
    left = found - np.linalg.lstsq(waves.T, found, rcond=None)[0] @ waves
    assert np.linalg.norm(found) > 0.1
    np.testing.assert_allclose(left, 0, atol=1e-14)
    wave = stream(N, (1, 2), 0.4)
    bent = np.einsum("dkj,dj->dk", inverse_laplacian(N), np.asarray(diagonals(jnp.asarray(wave))))
    np.testing.assert_allclose(bent, np.asarray(diagonals(jnp.asarray(wave))) / 5, atol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["auto", "xla"])
def test_vorticity_keeps_its_spectrum_under_transport_noise(mode):
    """Forty steps of the truncation with N = 8, by either engine: eigenvalues of W, to 1e−12."""
    scheme = bm.HamiltonianMidpoint(sine_euler())
    begin = start(scheme)
    run = bm.simulate(scheme, begin, step=0.1, steps=40, trajectories=3, seed=2, mode=mode, progress=False)
    hermitian = lambda M: 0.5 * (M + M.T) - 0.5j * (M - M.T)
    want = np.linalg.eigvalsh(hermitian(np.asarray(begin.p)))
    for M in np.asarray(run.final.p):
        np.testing.assert_allclose(np.linalg.eigvalsh(hermitian(M)), want, atol=1e-12)
        assert np.abs(M - np.asarray(begin.p)).max() > 1e-3


def test_refusals():
    with pytest.raises(BismutError, match="skew"):
        bm.structure_constants(np.ones((3, 3, 3)))
    broken = np.zeros((3, 3, 3))
    broken[0, 1, 0], broken[1, 0, 0], broken[0, 2, 1], broken[2, 0, 1] = 1.0, -1.0, 1.0, -1.0
    with pytest.raises(BismutError, match="Jacobi"):
        bm.structure_constants(broken)
    with pytest.raises(BismutError, match="leaves their span"):
        bm.matrix_algebra(np.eye(4)[:2].reshape(2, 2, 2) + np.eye(4)[2:].reshape(2, 2, 2)[::-1] * 2)
    with pytest.raises(BismutError, match="not linearly independent"):
        bm.matrix_algebra(np.ones((2, 2, 2)))
    with pytest.raises(BismutError, match="n ≥ 2"):
        bm.su(1)
    with pytest.raises(BismutError, match="leave the group"):
        bm.HamiltonianMidpoint(noisy(bm.so(4)), retraction="cayley")
