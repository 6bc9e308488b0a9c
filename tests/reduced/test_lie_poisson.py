"""After reduction by symmetry: steps are coadjoint actions, keep the bracket and its Casimirs for every path, and are those of the whole system."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError, ShapeError
from bismut.findings import convergence
from bismut.findings.structure import poisson_defect
from bismut.flows import flow
from bismut.gallery.heavy_top_reduced import heavy_top_reduced
from bismut.gallery.heavy_top_reduced import unreduced as whole_top
from bismut.gallery.rigid_body_reduced import rigid_body_reduced
from bismut.gallery.rigid_body_reduced import unreduced as whole_body
from bismut.programs.evaluation import evaluate
from bismut.spaces import poisson_tensor

INERTIA = jnp.array([1.0, 2.0, 3.3])


@cache
def crooked() -> bm.System:
    """A free body that nonlinear noises turn."""
    return bm.LiePoisson(bm.SO3(), lambda mu: 0.5 * mu @ (mu / INERTIA), noise=lambda mu: jnp.array([0.3 * mu[0] * mu[1], jnp.sin(mu[2])]))


@cache
def vehicle() -> bm.System:
    """Kirchhoff's equations, carried about at random."""
    masses = jnp.array([1.4, 3.4, 2.8, 1.2, 1.4, 2.4])
    return bm.LiePoisson(bm.SE3(), lambda mu: 0.5 * mu @ (mu / masses), noise=lambda mu: 0.2 * jnp.array([mu[0] + mu[4], mu[1] * mu[5]]))


@cache
def sunk() -> bm.System:
    """A vehicle with a vertical that it carries along."""
    H = lambda mu, a: 0.5 * mu @ (mu / jnp.array([1.4, 3.4, 2.8, 1.2, 1.4, 2.4])) + jnp.array([0.1, 0.2, 1.0]) @ a
    return bm.LiePoisson(bm.SE3(), H, noise=lambda mu, a: jnp.array([0.3 * a[0] * mu[3]]), advected=1)


@cache
def disc() -> bm.System:
    return bm.LiePoisson(bm.SE2(), lambda mu: 0.5 * mu @ (mu / INERTIA), noise=lambda mu: 0.4 * jnp.cos(mu))


@cache
def tops() -> bm.System:
    """A body in two fields, and so with two advected vectors."""
    H = lambda mu, a: 0.5 * mu @ (mu / INERTIA) + a[0, 2] + 0.5 * a[1, 0] ** 2
    return bm.LiePoisson(bm.SO3(), H, noise=lambda mu, a: jnp.array([0.3 * a[0, 1] * mu[2]]), advected=2)


SYSTEMS = {"so(3)*": crooked, "se(3)*": vehicle, "se(2)*": disc, "so(3)* ⋉ ℝ³": heavy_top_reduced, "so(3)* ⋉ ℝ⁶": tops, "se(3)* ⋉ ℝ³": sunk}
every = pytest.mark.parametrize("name", SYSTEMS)


def random_state(system: bm.System, seed: int) -> bm.State:
    rng = np.random.default_rng(seed)
    points = jax.tree.map(lambda leaf: rng.uniform(-1, 1, leaf.shape), jax.eval_shape(system.space.origin))
    return jax.device_put(bm.State(points, rng.normal(size=system.space.dim)))


QUICK = ("so(3)*", "se(3)*", "so(3)* ⋉ ℝ³")  # the others say the same of longer programs


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SYSTEMS])
def test_steps_are_poisson_maps_under_strong_noise(name):
    """max |T B Tᵀ − B| ≤ 1e−11 with increments of 3√h."""
    system, h = SYSTEMS[name](), 0.05
    dW = 3 * np.sqrt(h) * jnp.array([1.0, -1.0, 1.0])[: system.channels]
    state = random_state(system, 3)
    defect, _ = evaluate(lambda z: poisson_defect(bm.HamiltonianMidpoint(system), z, h, dW, 0.0), state)
    assert float(defect) < 1e-11
    rough, _ = evaluate(lambda z: poisson_defect(bm.RungeKutta4(system), z, 0.3, dW, 0.0), state)
    assert float(rough) > 1e-9


@every
def test_casimirs_are_what_the_bracket_makes_invariant(name):
    """B ∂C = 0 for every Casimir that a system names."""
    system = SYSTEMS[name]()
    state = random_state(system, 4)
    assert system.invariants

    def bracket_and_slopes(state: bm.State):
        z, back = jax.flatten_util.ravel_pytree((state.q, state.p))
        of = lambda casimir: jax.jacrev(lambda z: jnp.ravel(system.invariant(casimir, bm.State(*back(z)))))(z)
        return poisson_tensor(system.space, state.q, state.p), [of(casimir) for casimir in system.invariants]

    B, slopes = jax.tree.map(np.asarray, evaluate(bracket_and_slopes, state))
    np.testing.assert_allclose(B, -B.T, atol=1e-14)
    for slope in slopes:
        assert np.abs(slope).max() > 0.1
        np.testing.assert_allclose(B @ slope.T, 0, atol=1e-13)


@pytest.mark.parametrize("name", QUICK)
def test_casimirs_are_kept_to_round_off_over_long_runs(name):
    """10⁵ noisy steps of 8 trajectories: the random walk of round-off and no more, 1e−12 of the largest state."""
    system = SYSTEMS[name]()
    scheme = bm.HamiltonianMidpoint(system)
    state = random_state(system, 5)
    observe = {casimir: bm.invariant(casimir) for casimir in system.invariants} | {"size": lambda z: z.p @ z.p}
    run = bm.simulate(scheme, state, step=0.05, steps=100_000, trajectories=8, seed=1, observe=observe, every=10_000, mode="native", progress=False)
    assert run.outcome.ok
    size = 4 + float(run["size"].max.max())  # |a|² < 4 here
    for casimir in system.invariants:
        spread = np.abs(np.stack([run[casimir].max, run[casimir].min]) - np.asarray(system.invariant(casimir, state))).max()
        assert spread < 1e-12 * size, casimir


@pytest.mark.parametrize(
    ("scheme", "retraction"),
    [
        (bm.HamiltonianMidpoint, "cayley"),
        (bm.HamiltonianVerlet, "cayley"),
        pytest.param(bm.HamiltonianEuler, "cayley", marks=pytest.mark.slow),
        pytest.param(bm.HamiltonianMidpoint, "exp", marks=pytest.mark.slow),
    ],
)
def test_the_reduced_run_is_the_whole_run_pushed_down(scheme, retraction):
    """On one path, 100 steps: μ and a = Rᵀe₃ of the heavy top on T*SO(3), and of its reduction; and μ of the free body."""
    path, mu = bm.Wiener(5), jnp.array([0.2, -0.3, 1.5])
    R = evaluate(bm.SO3().from_rotation_vector, np.array([0.5, -1.0, 0.8]))
    run = lambda system, q: bm.trajectory(scheme(system, retraction=retraction), bm.State(q, mu), step=0.05, steps=100, path=path)
    if scheme is bm.HamiltonianMidpoint:
        np.testing.assert_allclose(run(whole_body(), R).p, run(rigid_body_reduced(), ()).p, rtol=0, atol=1e-12)
    reduced = heavy_top_reduced()
    above, below = run(whole_top(reduced), R), run(reduced, jax.device_put(np.asarray(R)[2]))
    np.testing.assert_allclose(above.p, below.p, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.asarray(above.q)[:, 2], below.q, rtol=0, atol=1e-12)


def test_energy_stays_where_every_noise_commutes_with_it():
    """H quadratic and noise on its clock, H₁ = σH, for 10⁵ steps of 0.1 with the spherical midpoint rule: 1e−12. A symmetric body turned about its
    axis
    keeps H with the midpoint rule itself."""
    energy = lambda mu: 0.5 * mu @ (mu / INERTIA)
    clock = bm.LiePoisson(bm.SO3(), energy, noise=lambda mu: 0.3 * energy(mu)[None])
    even = lambda mu: 0.5 * mu @ (mu / jnp.array([1.0, 1.0, 3.0]))
    symmetric = bm.LiePoisson(bm.SO3(), even, noise=lambda mu: jnp.array([0.3 * mu[2], 0.2 * mu[2] ** 2]))
    for scheme in (bm.SphericalMidpoint(clock), bm.HamiltonianMidpoint(symmetric)):
        start = scheme.start(momentum=jnp.array([0.3, 1.0, -0.5]))
        run = bm.simulate(
            scheme, start, step=0.1, steps=100_000, trajectories=8, seed=1, observe={"H": bm.energy}, every=10_000, mode="native", progress=False
        )
        first = float(bm.energy(scheme, start))
        assert max(float(run["H"].max.max()) - first, first - float(run["H"].min.min())) < 1e-12


def test_the_spherical_midpoint_is_a_poisson_map():
    scheme = bm.SphericalMidpoint(crooked())
    defect, _ = evaluate(lambda z: poisson_defect(scheme, z, 0.1, jnp.array([0.5, -0.7]), 0.0), random_state(crooked(), 3))
    assert float(defect) < 1e-12
    with pytest.raises(BismutError, match="SphericalMidpoint steps"):
        bm.SphericalMidpoint(vehicle())


def test_the_spherical_midpoint_is_the_same_for_every_retraction():
    """K_d is constant along rays, so ξ is at right angles to μ̄, and the length of μ̄ takes up what one retraction turns more than another."""
    start, dW = bm.State((), jnp.array([0.9, 1.0, 1.2])), jnp.array([0.5, -0.4])

    def end(retraction):
        moved = flow(bm.SphericalMidpoint(crooked(), retraction=retraction))
        return evaluate(lambda dW: moved.advance(start, 0.4, dW, 0.0)[0].p, dW)

    assert np.abs(end("cayley") - end("exp")).max() < 1e-14
    assert np.abs(end("cayley") - start.p).max() > 0.1


@pytest.mark.parametrize("noises", [pytest.param("commuting", marks=pytest.mark.slow), "not"])
def test_the_strong_order_follows_the_measured_commutator(noises):
    """{μ₁, μ₂} = −μ₃ ≠ 0 allows strong order ½; functions of μ₃ and of |μ|² commute, and give 1. Slopes within 0.2 of the claim."""
    both = (lambda mu: 0.7 * mu[:2]) if noises == "not" else (lambda mu: jnp.array([0.6 * mu[2] ** 2, 0.7 * mu[2] + 0.1 * mu @ mu]))
    system = bm.LiePoisson(bm.SO3(), lambda mu: 0.5 * mu @ (mu / INERTIA), noise=both)
    scheme = bm.HamiltonianMidpoint(system)
    assert scheme.effective_claims.strong_order == (0.5 if noises == "not" else 1.0)
    start = scheme.start(momentum=jnp.array([0.3, 1.0, -0.5]))
    found = convergence(scheme, bm.RungeKutta4(system), start, t0=0.0, time=0.32, levels=(8, 16, 32), finest=1024, trajectories=128, seed=3)
    assert found.order == pytest.approx(scheme.effective_claims.strong_order, abs=0.2)


def test_the_order_without_noise_and_the_right_limit():
    system = heavy_top_reduced(turning=0.0)
    scheme = bm.HamiltonianMidpoint(system)
    start = scheme.start(jnp.array([0.6, 0.0, 0.8]), momentum=jnp.array([0.2, -0.3, 1.5]))
    found = convergence(scheme, bm.RungeKutta4(system), start, t0=0.0, time=0.64, levels=(8, 16, 32), finest=512, noise=0.0)
    assert found.order == pytest.approx(2.0, abs=0.1)
    assert found.errors[-1] < 1.1 * found.own[-1] / 3  # the error that its own differences foretell


def test_both_engines_and_trajectory_agree():
    scheme = bm.HamiltonianMidpoint(crooked())
    start = scheme.start(momentum=jnp.array([0.2, -0.3, 1.5]))
    common = {"step": 0.05, "steps": 20, "trajectories": 3, "seed": 2, "progress": False}
    native, xla = (bm.simulate(scheme, start, mode=mode, **common).final for mode in ("native", "xla"))
    one = bm.trajectory(scheme, start, step=0.05, steps=20, seed=2, path=None).final
    for a, b, c in zip(jax.tree.leaves(native), jax.tree.leaves(xla), jax.tree.leaves(one), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.asarray(a)[0], c, rtol=0, atol=1e-12)


def test_starts_may_be_a_batch_without_any_point():
    scheme = bm.HamiltonianMidpoint(crooked())
    start = scheme.start(momentum=jnp.ones((5, 3)))
    run = bm.simulate(scheme, start, step=0.05, steps=4, trajectories=5, observe={"C": bm.invariant("mu_mu")}, progress=False)
    np.testing.assert_allclose(run["C"].mean, 3.0, atol=1e-13)
    end = lambda mu: bm.trajectory(scheme, scheme.start(momentum=mu), step=0.05, steps=4, seed=1).final.p[0]
    slope = evaluate(jax.grad(end), jnp.ones(3))
    assert np.isfinite(slope).all()


def test_refusals():
    H = lambda mu: mu @ mu
    with pytest.raises(BismutError, match="group or an algebra"):
        bm.LiePoisson(3, H)
    with pytest.raises(ShapeError, match="function of \\(mu\\)"):
        bm.LiePoisson(bm.SO3(), lambda mu, a: mu @ a)
    with pytest.raises(ShapeError, match="one array"):
        bm.LiePoisson(bm.SO3(), H, noise=H)
    with pytest.raises(BismutError, match="no vectors"):
        bm.LiePoisson(bm.Euclidean(3), H, advected=1)
    with pytest.raises(BismutError, match="advected= is missing"):
        bm.LiePoisson(bm.SO3(), H, act=lambda g, a: a)
    with pytest.raises(ShapeError, match="momentum=mu"):
        bm.HamiltonianMidpoint(crooked()).start(jnp.eye(3), momentum=jnp.ones(3))
    with pytest.raises(BismutError, match="cannot step"):
        bm.VariationalEuler(crooked())
    with pytest.raises(BismutError, match="No velocity"):
        flow(bm.HamiltonianMidpoint(crooked())).scheme.space.subtract((), ())
