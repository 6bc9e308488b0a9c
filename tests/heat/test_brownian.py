"""Overdamped motion: free diffusion at the rates of Perrin and Favro, exp(−U/kT) to the order that is claimed, and what drives it.

Statistical tests fix their seed and allow four standard errors: a false alarm of 6e-5 each.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from bismut.flows import kernel

SIGMAS = 4.0
LANGEVIN_1 = 1 / np.tanh(1.0) - 1.0  # ⟨cos⟩ of a dipole with U = −cos at kT = 1


def mean_of(scheme, start, function, step, time, trajectories, seed=1):
    """⟨function⟩ over time and trajectories after a burn-in, and its standard error."""
    steps = round(time / step)
    result = bm.simulate(
        scheme, start, step=step, steps=steps, burn_in=steps // 5, trajectories=trajectories, seed=seed, observe={"x": bm.time_average(function)}
    )
    assert result.provenance.mode == "native"
    assert not result.outcome.failures
    return float(result.x.mean), float(result.x.stderr)


def test_a_free_triaxial_body_forgets_its_axes_at_the_rates_of_perrin_and_favro():
    """⟨u_k(0)·u_k(t)⟩ decays at D_i + D_j; of second rank, u_i u_j decays at D_i + D_j + 4 D_k, and two sums c·(u_1², u_2², u_3²) at 2 Σ D ∓ 2 Δ.

    Δ² = Σ D_i² − Σ_{i<j} D_i D_j. L u_k² = 2 Σ_{i≠k} D_i (u_j² − u_k²), j the third axis, so c are eigenvectors of that matrix.
    """
    D = np.array([1.0, 2.0, 3.0])
    scheme = bm.Brownian(bm.mechanical(bm.SO3()), temperature=1.0, mobility=jnp.asarray(D))
    tilted = bm.SO3().move(jnp.eye(3), jnp.array([0.7, 0.5, 0.0]))
    third = {(0, 1): 2, (1, 2): 0, (0, 2): 1}
    generator = np.array([[-2 * (6 - D[k]) if k == j else 2 * D[third[min(k, j), max(k, j)]] for j in range(3)] for k in range(3)])
    _, modes = np.linalg.eigh(generator)  # at −(12 + 2√3), −(12 − 2√3) and 0
    spread_of_three = 2 * np.sqrt(D @ D - D[0] * D[1] - D[1] * D[2] - D[2] * D[0])
    observe = {
        "squares": lambda state: jnp.asarray(modes[:, :2].T) @ state.q[2] ** 2,
        "axes": lambda state: jnp.diagonal(tilted.T @ state.q),
        "products": lambda state: state.q[2, jnp.array([1, 2, 0])] * state.q[2, jnp.array([2, 0, 1])],
    }
    result = bm.simulate(scheme, scheme.start(tilted), step=0.005, steps=40, trajectories=60_000, seed=3, observe=observe, every=20)
    times = np.asarray(result.axes.mean.time)[1:]
    for report, rates in (
        (result.axes, D.sum() - D),
        (result.products, D.sum() + 3 * D),
        (result.squares, 2 * D.sum() + spread_of_three * np.array([1.0, -1.0])),
    ):
        mean, error = np.asarray(report.mean)[1:], np.asarray(report.stderr)[1:]
        slope = -np.log(mean[1] / mean[0]) / (times[1] - times[0])
        spread = np.hypot(error[1] / mean[1], error[0] / mean[0]) / (times[1] - times[0])
        # The discrete rate of one step differs from the exact one by a part of order h times the rate.
        assert np.all(np.abs(slope - rates) < SIGMAS * spread + 0.005 * rates**2), (slope, rates, spread)


def test_a_dipole_on_the_rotation_group_is_aligned_to_second_order():
    """Without the Ricci term ⟨cos⟩ would be off by −h/12 · 0.276: 0.0023 at h = 0.1, six of these standard errors."""
    scheme = bm.Brownian(bm.mechanical(bm.SO3(), potential=lambda R: -R[2, 2]), temperature=1.0)
    mean, error = mean_of(scheme, scheme.start(jnp.eye(3)), lambda state: state.q[2, 2], 0.1, 40.0, 40_000)
    assert error < 0.00045
    assert abs(mean - LANGEVIN_1) < SIGMAS * error


def test_the_bias_of_the_dipole_falls_with_the_square_of_the_step():
    """−0.0032 at h = 0.4, and (4 m(h/2) − m(h))/3 is exact to order h⁴; a bias of order h would leave 0.0011, four of these standard errors."""
    scheme = bm.Brownian(bm.mechanical(bm.SO3(), potential=lambda R: -R[2, 2]), temperature=1.0)
    start = scheme.start(jnp.eye(3))
    (large, more), (small, less) = (mean_of(scheme, start, lambda state: state.q[2, 2], h, 60.0, 120_000, seed=5) for h in (0.4, 0.2))
    assert large - LANGEVIN_1 == pytest.approx(-0.0032, abs=SIGMAS * more)
    error = np.hypot(4 * less, more) / 3
    assert error < 0.0003
    assert abs((4 * small - large) / 3 - LANGEVIN_1) < SIGMAS * error


@pytest.mark.parametrize("mobility", [1.0, (0.5, 1.0, 2.0)], ids=["sphere", "triaxial"])
def test_metropolised_steps_are_exact_at_any_step(mobility):
    scheme = bm.Brownian(bm.mechanical(bm.SO3(), potential=lambda R: -R[2, 2]), temperature=1.0, mobility=jnp.asarray(mobility), metropolised=True)
    mean, error = mean_of(scheme, scheme.start(jnp.eye(3)), lambda state: state.q[2, 2], 0.8, 80.0, 8_000)
    assert abs(mean - LANGEVIN_1) < SIGMAS * error


def test_metropolised_steps_are_exact_on_a_surface():
    sphere = bm.mechanical(bm.Euclidean(3), potential=lambda q: -q[2], constraint=lambda q: jnp.array([q @ q - 1.0]))
    scheme = bm.Brownian(sphere, temperature=1.0, metropolised=True)
    mean, error = mean_of(scheme, scheme.start(jnp.array([0.0, 0.0, 1.0])), lambda state: state.q[2], 0.2, 60.0, 2_000)
    assert abs(mean - LANGEVIN_1) < SIGMAS * error


def test_on_a_surface_the_bias_vanishes_with_the_step():
    """Order 1: half the step has half the bias, and a linear extrapolation is right."""
    sphere = bm.mechanical(bm.Euclidean(3), potential=lambda q: -q[2], constraint=lambda q: jnp.array([q @ q - 1.0]))
    scheme = bm.Brownian(sphere, temperature=1.0)
    means, errors = zip(
        *(mean_of(scheme, scheme.start(jnp.array([0.0, 0.0, 1.0])), lambda state: state.q[2], h, 40.0, 4_000) for h in (0.05, 0.025)), strict=True
    )
    assert abs(2 * means[1] - means[0] - LANGEVIN_1) < SIGMAS * np.hypot(2 * errors[1], errors[0]) + 0.002  # what is left is of order h²


@pytest.mark.slow
def test_a_rigid_trimer_bends_as_the_surface_says():
    """Two bonds of length 1 held by constraints: by area cos θ has the weight √(4 − cos²θ), so ⟨cos²⟩ = 0.3210211; stiff bonds would have 1/3."""

    def bonds(x):
        return jnp.stack([jnp.sum((x[1] - x[0]) ** 2) - 1, jnp.sum((x[2] - x[1]) ** 2) - 1])

    trimer = bm.mechanical(bm.Euclidean(3) ** 3, constraint=bonds)
    scheme = bm.Brownian(trimer, temperature=1.0, metropolised=True)
    start = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    cosine = lambda state: ((state.q[0] - state.q[1]) @ (state.q[2] - state.q[1])) ** 2
    mean, error = mean_of(scheme, scheme.start(start), cosine, 0.1, 20.0, 1_000)
    assert error < 0.003
    assert abs(mean - 0.3210211) < SIGMAS * error


SPHERE = bm.mechanical(bm.Euclidean(3), potential=lambda q: -q[2], constraint=lambda q: jnp.array([q @ q - 1.0]))
DIPOLE = bm.mechanical(bm.SO3(), potential=lambda R: -R[2, 2])


@pytest.mark.parametrize(
    ("system", "settings", "order", "moves"),
    [
        (bm.mechanical(bm.Euclidean(2)), {"mobility": [1.0, 2.0]}, "order 2", "explicit, with a constant velocity"),
        (DIPOLE, {}, "order 2", "explicit, with a constant velocity"),
        (
            DIPOLE,
            {"mobility": jnp.array([0.5, 1.0, 2.0])},
            "order 1, as moves with this mobility are no geodesics",
            "explicit, with a constant velocity",
        ),
        (DIPOLE, {"retraction": "cayley"}, "order 1, as moves by Cayley are too short", "explicit, with a constant velocity"),
        (DIPOLE, {"mobility": lambda q: jnp.eye(3)}, "order 1", "explicit, with a constant velocity"),
        (
            SPHERE,
            {},
            "order 1, as moves end on a surface",
            "explicit, with a constant velocity, then to the nearest point of the surface along M Gᵀλ",
        ),
        (SPHERE, {"metropolised": True}, "accepted or rejected: exp(−U/kT) exactly", "variational, solved for the velocity"),
    ],
)
def test_explain_says_which_order_averages_have_and_how_it_moves(system, settings, order, moves):
    lines = str(bm.explain(bm.Brownian(system, temperature=1.0, **settings))).splitlines()
    assert next(line for line in lines if line.startswith("  step ")).endswith(order)
    assert next(line for line in lines if line.startswith("  moves ")) == f"  moves        {moves}"


def test_a_mobility_that_varies_needs_its_divergence():
    """U = z − 5 ln z and M = z: dz = (6 − z) dt + √(2z) dW. ⟨z⟩ = 6 at any step; without kT M′ it would be 5."""
    well = bm.mechanical(bm.Euclidean(1), potential=lambda q: q[0] - 5 * jnp.log(q[0]))
    scheme = bm.Brownian(well, temperature=1.0, mobility=lambda q: q)
    mean, error = mean_of(scheme, scheme.start(jnp.array([6.0])), lambda state: state.q[0], 0.01, 60.0, 400)
    assert abs(mean - 6.0) < SIGMAS * error
    assert error < 0.1

    class Without(bm.Brownian):
        def divergence(self, q, t):
            return jnp.zeros(1)

    dropped = Without(well, temperature=1.0, mobility=lambda q: q)
    mean, error = mean_of(dropped, dropped.start(jnp.array([6.0])), lambda state: state.q[0], 0.01, 60.0, 400)
    assert abs(mean - 5.0) < SIGMAS * error


def test_the_divergence_is_that_of_finite_differences_along_the_frame():
    """div M = Σ_i X_i M_ij, and its estimate by random finite differences, ⟨M(q ⊕ εw) w⟩/ε over w with unit covariance, is the same."""
    space = bm.SO3() * bm.Euclidean(2)
    A = jnp.linspace(0.5, 1.5, 25).reshape(5, 5)

    def mobility(q):
        B = A * (1 + 0.3 * jnp.sin(q[0].ravel()[:5] + jnp.sum(q[1])))[:, None] + jnp.eye(5)
        return B @ B.T

    scheme = bm.Brownian(bm.mechanical(space), temperature=1.0, mobility=mobility)
    q = space.random(jax.random.key(3))
    exact = scheme.divergence(q, jnp.zeros(()))
    eps, frame = 1e-5, jnp.eye(5)
    moved = lambda w: mobility(space.move(q, space.unflatten(w)))
    along = sum((moved(eps * w) - moved(-eps * w)) @ w / (2 * eps) for w in frame)
    assert jnp.allclose(exact, along, rtol=1e-7, atol=1e-7)
    w = jax.random.normal(jax.random.key(5), (2_000, 5))
    samples = jax.vmap(lambda w: (moved(eps * w) - moved(-eps * w)) @ w / (2 * eps))(w)
    assert jnp.all(jnp.abs(samples.mean(0) - exact) < SIGMAS * samples.std(0) / np.sqrt(2_000))


def test_an_active_particle_diffuses_faster():
    """D_eff = D + v²/(d(d − 1) D_r) in d = 2 dimensions."""
    D, Dr, speed = 0.5, 1.0, 3.0

    def push(q, v):
        heading = jnp.reshape(q[1], ())
        return speed / D * jnp.array([jnp.cos(heading), jnp.sin(heading)]), jnp.zeros_like(v[1])

    swimmer = bm.mechanical(bm.Euclidean(2) * bm.Circle(), force=push)
    scheme = bm.Brownian(swimmer, temperature=1.0, mobility=(D, Dr))
    origin = swimmer.space.origin()
    result = bm.simulate(
        scheme,
        scheme.start(origin),
        step=0.02,
        steps=1000,
        trajectories=20_000,
        seed=2,
        every=250,
        observe={"x": lambda state: state.q[0] @ state.q[0]},
    )
    mean, error, times = np.asarray(result.x.mean), np.asarray(result.x.stderr), np.asarray(result.x.mean.time)
    slope, spread = (mean[-1] - mean[1]) / (times[-1] - times[1]) / 4, np.hypot(error[-1], error[1]) / (times[-1] - times[1]) / 4
    assert abs(slope - (D + speed**2 / (2 * Dr))) < SIGMAS * spread + 0.02 * slope  # of order h


def test_it_is_the_limit_of_langevin_motion_at_strong_friction():
    """⟨cos⟩ on its way to equilibrium, at one time; the difference is of order 1/Γ²."""
    system = bm.mechanical(bm.SO3(), mass=jnp.array([1.0, 2.0, 3.0]), potential=lambda R: -2.0 * R[2, 2])
    over, gamma = jnp.diag(jnp.array([1.0, -1.0, -1.0])), 40.0
    slow = bm.Langevin(system, temperature=1.0, friction=gamma)
    fast = bm.Brownian(system, temperature=1.0, mobility=1.0)
    observe = {"cos": lambda state: state.q[2, 2]}
    first = bm.simulate(slow, slow.start(over, temperature=1.0), step=0.01, steps=2400, trajectories=6_000, seed=1, observe=observe, every=2400)
    second = bm.simulate(fast, fast.start(over), step=0.01, steps=60, trajectories=40_000, seed=2, observe=observe, every=60)
    apart = float(first.cos.mean[-1] - second.cos.mean[-1])
    assert abs(apart) < SIGMAS * np.hypot(float(first.cos.stderr[-1]), float(second.cos.stderr[-1])) + 0.01


def test_many_bodies_run_natively_and_a_cut_run_goes_on():
    bodies = bm.rigid_bodies(mass=jnp.ones(4), inertia=jnp.ones((4, 3)), potential=bm.dipoles(jnp.array([0.0, 0.0, 1.0])) + bm.soft_spheres())
    scheme = bm.Brownian(bodies, temperature=0.2, mobility=(0.5, 1.0))
    q = (2.0 * jnp.arange(12.0).reshape(4, 3), jnp.broadcast_to(jnp.eye(3), (4, 3, 3)))
    settings = {"step": 1e-3, "trajectories": 5, "seed": 4, "observe": {"U": bm.potential_energy}}
    whole = bm.simulate(scheme, scheme.start(q), steps=40, **settings)
    part = bm.simulate(scheme, scheme.start(q), steps=25, **settings)
    rest = bm.simulate(scheme, steps=15, continue_from=part, observe=settings["observe"])
    assert whole.provenance.mode == "native"
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(whole.final), jax.tree.leaves(rest.final), strict=True))


def test_heat_and_work_add_up():
    """U rises by heat and work: a dragged trap does the work of its clock."""
    trap = bm.mechanical(bm.Euclidean(1), potential=lambda q, t: 0.5 * (q[0] - t) ** 2)
    scheme = bm.Brownian(trap, temperature=0.3)
    observe = {"U": bm.energy, "heat": bm.heat, "work": bm.work}
    result = bm.simulate(scheme, scheme.start(jnp.zeros(1), ledger=True), step=0.05, steps=200, trajectories=2_000, seed=1, observe=observe)
    rise = np.asarray(result.U.mean - result.U.mean[0])
    assert np.allclose(rise, np.asarray(result.heat.mean + result.work.mean), atol=1e-10)
    # In the steady state the trap runs ahead by v/M = 1 and does work at the rate 1.
    rate = float(result.work.mean[-1] - result.work.mean[len(rise) // 2]) / float(result.U.mean.time[-1] - result.U.mean.time[len(rise) // 2])
    assert abs(rate - 1.0) < 0.05


@pytest.mark.parametrize(
    ("system", "settings", "words"),
    [
        (bm.mechanical(bm.Euclidean(1), noise=lambda q: q), {}, "noise of its own"),
        (bm.mechanical(bm.Euclidean(1), force=lambda q, v: -v), {}, "depends on the velocity"),
        (bm.mechanical(bm.Euclidean(2)), {"mobility": -1.0}, "mobility must be positive"),
        (bm.mechanical(bm.Euclidean(2)), {"mobility": lambda q: jnp.eye(3)}, "matrix \\(2, 2\\)"),
        (bm.mechanical(bm.Euclidean(2)), {"mobility": lambda q: jnp.eye(2), "metropolised": True}, "constant mobility"),
        (bm.mechanical(bm.Euclidean(2), force=lambda q, v: q), {"metropolised": True}, "not −dU"),
        (bm.mechanical(bm.Euclidean(2)), {"temperature": 0.0, "metropolised": True}, "must be positive"),
    ],
)
def test_what_has_no_overdamped_motion_is_refused(system, settings, words):
    with pytest.raises(BismutError, match=words):
        bm.Brownian(system, **{"temperature": 1.0, **settings})


ROOT = np.random.default_rng(8).normal(size=(6, 6))
COUPLED = 0.2 * (ROOT @ ROOT.T + np.eye(6))


def test_a_coupled_mobility_spreads_a_body_as_it_says():
    """Displacements u of n short steps, along the axes of each body: ⟨u⟩ = M (Rᵀf, τ) n h, and their covariance is 2 kT M h (n − ½), as the noise of
    a step is the mean of two successive normals.

    42 averages each, of two bodies with different M, at four and a half standard errors: a false alarm of 6e-4.
    """
    kT, h, n, count = 0.7, 5e-6, 20, 100_000
    M = np.stack([COUPLED, np.diag([1.0, 2.0, 3.0, 0.5, 0.3, 0.2]) + 0.05])
    push = jnp.array([[30.0, 0.0, -20.0], [0.0, 50.0, 0.0]])
    bodies = bm.rigid_bodies(mass=np.ones(2), inertia=np.ones((2, 3)), force=lambda q, v: (push, 20.0 * jnp.ones((2, 3))))
    scheme = bm.Brownian(bodies, temperature=kT, mobility=jnp.asarray(M))
    x, R = np.zeros((2, 3)), np.asarray(bm.SO3().from_rotation_vector(jnp.array([0.7, -0.4, 1.1])))[None].repeat(2, 0)
    end = bm.simulate(scheme, scheme.start((x, R)), step=h, steps=n, trajectories=count, seed=2).final.q
    for k in range(2):
        turn = np.einsum("ij,njk->nik", R[k].T, np.asarray(end[1])[:, k])
        angle = 0.5 * np.stack([turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], -1)
        u = np.concatenate([np.asarray(end[0])[:, k] @ R[k], angle], -1)
        drift = n * h * M[k] @ np.concatenate([R[k].T @ np.asarray(push)[k], 20.0 * np.ones(3)])
        expected = 2 * kT * h * (n - 0.5) * M[k]
        assert np.all(np.abs(u.mean(0) - drift) < 4.5 * np.sqrt(np.diag(expected) / count) + 0.01 * n * h), (u.mean(0), drift)
        spread = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / count)
        moved = np.cov(u.T)
        assert np.all(np.abs(moved - expected) < 4.5 * spread + 0.003 * np.abs(expected).max()), moved / expected


@pytest.mark.parametrize("metropolised", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_coupled_mobility_samples_exp_of_the_energy(metropolised):
    """U = |x|²/2 − x·R e/2 − R₃₃, not isotropic: exactly where steps are Metropolised, to order h otherwise."""
    axis = jnp.array([1.0, 0.5, 0.0])
    energy = lambda x, R: 0.5 * jnp.sum(x * x) - 0.8 * x[0] @ R[0] @ axis - R[0, 2, 2]
    bodies = bm.rigid_bodies(mass=[1.0], inertia=np.ones((1, 3)), potential=energy)
    start = (np.zeros((1, 3)), np.eye(3)[None])
    looks = lambda state: jnp.array([state.q[0][0] @ state.q[0][0], state.q[1][0, 2, 2], state.q[0][0] @ state.q[1][0] @ axis, state.q[0][0, 2]])
    scheme = bm.Brownian(bodies, temperature=1.0, mobility=jnp.asarray(COUPLED), metropolised=metropolised)
    settings = {"step": 0.15 if metropolised else 0.01, "steps": 1_500, "burn_in": 200, "trajectories": 1_000, "seed": 3}
    result = bm.simulate(scheme, scheme.start(start), observe={"x": bm.time_average(looks)}, **settings)
    # Integrated over x, exp(−U) leaves exp(0.32 |a|² + R₃₃): ⟨R₃₃⟩ is that of a dipole, and x is normal about 0.8 R a with unit variance.
    a2 = float(axis @ axis)
    exact = np.array([3 + 0.64 * a2, LANGEVIN_1, 0.8 * a2, 0.0])
    miss, error = np.asarray(result.x.mean) - exact, np.asarray(result.x.stderr)
    assert np.all(np.abs(miss) < SIGMAS * error + (0.0 if metropolised else 0.02)), (miss, error)
    assert np.all(error < 0.03)


def test_a_metropolised_step_of_a_moving_potential_begins_with_the_force_of_its_own_time():
    """What a step hands on makes no difference: after two steps it is where a third one, begun anew, would be."""
    trap = bm.mechanical(bm.Euclidean(1), potential=lambda q, t: 0.5 * (1 + 3 * t) * q[0] ** 2)
    scheme = bm.Brownian(trap, temperature=1.0, metropolised=True)
    rng = np.random.default_rng(3)
    carry, h = kernel.begin(scheme, bm.State(jnp.array([0.4]), jnp.zeros(1)), 0.0), 0.2
    for k in range(3):
        dW = jnp.sqrt(h) * jnp.asarray(rng.normal(size=3))
        alone = kernel.one_step(scheme, carry.state, h, dW, h * k)
        carry, _ = kernel.step(scheme, carry, h, dW, h * k)
        assert np.array_equal(carry.state.q, alone.q), k


@pytest.mark.parametrize("h", [0.1, 0.5])
def test_metropolised_work_obeys_jarzynski_at_any_step(h):
    """A spring from k = 1 to 4 in t = 2: ΔF = ½ ln 4 by each direction and by Bennett within 4.5 standard errors, a false alarm of 7e-6 each."""
    trap = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: 0.5 * parameters["k"] * q @ q, parameters={"k": 1.0})
    scheme = bm.Brownian(trap, temperature=1.0, metropolised=True)
    settings = {"parameter": "k", "between": (1.0, 4.0), "step": h, "steps": round(2 / h), "burn_in": 60, "trajectories": 40_000, "seed": 1}
    found = bm.free_energy(scheme, scheme.start(jnp.zeros(1)), integrate=False, **settings)
    for name in ("bennett", "jarzynski", "jarzynski_backward"):
        assert abs(found.ways[name].value - 0.5 * np.log(4.0)) < 4.5 * found.ways[name].stderr, name
    assert found.stderr < 0.003
    assert found.agree
