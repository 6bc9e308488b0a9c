"""Paths that are not Brownian: recorded, coloured, jumping, with long memory; and one's own. All are functions of (trajectory, step, channel)."""

from functools import cache
from inspect import unwrap

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import bismut as bm
from bismut.engines.native.engine import Written, write
from bismut.ensembles import request
from bismut.ensembles.checks import chosen_path
from bismut.errors import DomainError, ShapeError
from bismut.findings import convergence, symplectic_defect
from bismut.noise import counter
from bismut.programs.evaluation import evaluate

H, STEPS, MANY = 0.1, 64, 300


@cache
def scheme() -> bm.VariationalEuler:
    """Nonlinear in both, two noises."""
    potential = lambda q: 0.5 * q @ q + 0.1 * q[0] ** 3 * q[1]
    return bm.VariationalEuler(bm.mechanical(bm.Euclidean(2), potential=potential, noise=lambda q: jnp.array([jnp.sin(q[0]), q[0] * q[1]])))


class Ramp(bm.Path):
    """The path of a user: ΔX = h (i + 1) sin(k) for channel i, another sign for odd trajectories."""

    def change(self, trajectory, step, channel, h):
        sign = jnp.where(trajectory[0] % 2 == 0, 1.0, -1.0)
        return sign * h * (channel + 1) * jnp.sin(step[0].astype(float))


PATHS = {
    "coloured": bm.OrnsteinUhlenbeck(3, correlation_time=0.2),
    "jumps": bm.Jumps(1, rate=2.0, size=0.5, spread=0.3),
    "recorded": bm.Recorded(0.3 * np.random.default_rng(0).normal(size=(MANY, STEPS, 2))),
    "fractional": bm.FractionalBrownian(2, hurst=0.7, steps=STEPS),
    "own": Ramp(),
}
every = pytest.mark.parametrize("name", PATHS)


def many(path: bm.Path, trajectories: int = MANY) -> np.ndarray:
    """ΔX[step, trajectory, channel], in NumPy."""
    return np.asarray(evaluate(lambda numbers: path.increments(numbers, STEPS, 2, H), np.arange(trajectories)))


@cache
def increments(name: str) -> np.ndarray:
    return many(PATHS[name])


def start() -> bm.State:
    return scheme().start(jnp.array([1.0, 0.2]), velocity=jnp.array([0.0, 0.3]))


@every
def test_a_path_drives_everything_alike(name):
    """simulate, trajectory and average see the increments that the path shows, and a run can be cut and gone on with θ_s; natively, to the bit."""
    path = PATHS[name]
    run = bm.simulate(scheme(), start(), step=H, steps=20, trajectories=8, path=path, observe={"q": lambda s: s.q}, mode="native", progress=False)
    one = bm.trajectory(scheme(), start(), step=H, steps=20, path=path, trajectory=5)
    np.testing.assert_array_equal(np.asarray(one.final.q), run.final.q[5])
    cut = bm.State(one.q[7], one.p[7])
    gone_on = bm.trajectory(scheme(), cut, step=H, steps=13, path=path.shift(7), trajectory=5)
    # A fractional path is a product with a matrix, and seen from another step on a sum by itself: equal to round-off.
    np.testing.assert_allclose(gone_on.final.q, one.final.q, rtol=0, atol=1e-14 if name == "fractional" else 0)
    mean = bm.average(lambda s: s.q, scheme(), start(), step=H, steps=20, trajectories=8, path=path)
    np.testing.assert_allclose(mean, run.final.q.mean(0), rtol=0, atol=1e-12)
    replay = bm.Recorded(increments(name)[:20, 5])
    np.testing.assert_allclose(bm.trajectory(scheme(), start(), step=H, steps=20, path=replay).final.q, one.final.q, rtol=0, atol=1e-12)
    assert path.__class__.__name__ in run.provenance.path


@every
def test_a_shift_back_undoes_a_shift(name):
    path = PATHS[name]
    seen = lambda p: np.asarray(p.increment(counter(3), counter(11), 2, H))
    np.testing.assert_array_equal(seen(path.shift(9).shift(-9)), seen(path))
    np.testing.assert_array_equal(seen(path.shift(-4)), np.asarray(path.increment(counter(3), counter(7), 2, H)))


def test_coloured_noise_has_its_covariance():
    """Var ΔX = h − τ(1 − e^{−h/τ}), neighbours τ/2 (1 − e^{−h/τ})², over 600 paths, five standard errors; a false alarm in 6e5."""
    X, tau = increments("coloured"), 0.2
    fade = 1 - np.exp(-H / tau)
    # 600 independent paths: the spread of a mean over paths is that between paths.
    for found, want in (((X**2).mean(0), H - tau * fade), ((X[1:] * X[:-1]).mean(0), 0.5 * tau * fade**2)):
        assert abs(found.mean() - want) < 5 * found.std() / np.sqrt(found.size)
    far = (X[40:] * X[:-40]).mean(0)
    assert abs(far.mean()) < 5 * far.std() / np.sqrt(far.size)


def test_coloured_noise_becomes_the_wiener_path_of_its_seed():
    """The distance falls as √τ, which leads below any bound: X is within τ-correlation of W, and no correction is left over."""
    white = many(bm.Wiener(3), 40)
    gap = [np.sqrt(np.mean((many(bm.OrnsteinUhlenbeck(3, correlation_time=t), 40) - white) ** 2)) for t in (1e-3, 1e-5)]
    assert gap[0] / gap[1] == pytest.approx(10, rel=0.1)
    assert gap[1] < 5e-3


def test_the_white_limit_of_a_driven_system():
    """Final states under coloured noise tend to those under white noise of the same seed, as √τ."""
    run = lambda path: (
        bm.simulate(scheme(), start(), step=H, steps=20, trajectories=40, path=path, observe={"q": lambda s: s.q}, progress=False).final.q
    )
    white = run(bm.Wiener(3))
    gap = [np.sqrt(np.mean((run(bm.OrnsteinUhlenbeck(3, correlation_time=t)) - white) ** 2)) for t in (1e-4, 1e-6)]
    assert gap[0] / gap[1] == pytest.approx(10, rel=0.25)


def test_jumps_come_at_their_rate():
    """Counts of size-1 jumps follow the Poisson law: χ² of 38 400 counts; and squares their mean, five standard errors. A false alarm in 1e5."""
    counts = np.rint(many(bm.Jumps(4, rate=3.0))).astype(int).ravel()
    law = stats.poisson(0.3)
    seen = np.array([*np.bincount(np.minimum(counts, 4), minlength=5)])
    want = len(counts) * np.array([*law.pmf(np.arange(4)), law.sf(3)])
    assert stats.chisquare(seen, want).pvalue > 1e-5
    X = increments("jumps")
    square = (X**2).mean(0)
    want = 2 * H * (0.5**2 + 0.3**2) + (2 * H * 0.5) ** 2
    assert abs(square.mean() - want) < 5 * square.std() / np.sqrt(square.size)


@pytest.mark.parametrize("make", [bm.VariationalEuler, bm.Midpoint])
def test_a_jump_is_the_flow_of_its_noise_for_unit_time(make):
    """Marcus: oscillator, γ = sin q, one jump J = 2 in the middle: rotate, p ← p + J cos q, rotate. The error falls with h; steps are symplectic."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q[0] ** 2, noise=jnp.sin)
    made, T, J = make(system), 2.0, 2.0
    turn = lambda z, t: np.array([z[0] * np.cos(t) + z[1] * np.sin(t), z[1] * np.cos(t) - z[0] * np.sin(t)])
    z = turn(np.array([0.4, 0.9]), T / 2)
    exact = turn(z + np.array([0.0, J * np.cos(z[0])]), T / 2)

    def error(n):
        data = np.zeros((256, 1))  # of one shape, so that one program serves both
        data[n // 2] = J
        end = bm.trajectory(made, bm.State(jnp.array([0.4]), jnp.array([0.9])), step=T / n, steps=n, path=bm.Recorded(data)).final
        return np.abs(np.concatenate([end.q, end.p]) - exact).max()

    coarse, fine = error(128), error(256)
    assert 1.7 < coarse / fine < 2.3
    assert float(symplectic_defect(made, bm.State(jnp.array([0.4]), jnp.array([0.9])), 0.1, jnp.array([J]))) < 1e-13


def test_fractional_noise_has_its_covariance():
    """½h^{2H}(|j+1|^{2H} − 2|j|^{2H} + |j−1|^{2H}) at lags 0, 1, 5, 30, over 600 paths, five standard errors; a false alarm in 4e5."""
    X, hurst = increments("fractional"), 0.7
    for lag in (0, 1, 5, 30):
        found = (X[lag:] * X[: STEPS - lag]).mean(0)
        want = 0.5 * H ** (2 * hurst) * ((lag + 1) ** (2 * hurst) - 2 * lag ** (2 * hurst) + abs(lag - 1) ** (2 * hurst))
        assert abs(found.mean() - want) < 5 * found.std() / np.sqrt(found.size), lag


def test_orders_are_studied_on_any_path():
    """On a smooth path the variational Euler step is of order 1, on a fractional one as well; and the path is the one that was given."""
    study = lambda path: convergence(
        scheme(), bm.RungeKutta4(scheme().system), start(), t0=0.0, time=0.64, levels=(8, 16, 32), finest=128, trajectories=8, path=path
    )
    assert study(bm.FractionalBrownian(2, hurst=0.7, steps=128)).order == pytest.approx(1.0, abs=0.2)
    still = study(bm.Recorded(np.zeros((128, 2)))).errors
    assert not np.allclose(still, study(bm.FractionalBrownian(2, hurst=0.7, steps=128)).errors)


def test_the_normals_of_a_bath_are_those_of_the_seed():
    """Only the noise of the system follows the path: a recorded path of zeros beside a bath gives the run of the bath alone."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q[0] ** 2, noise=lambda q: q)
    made = bm.Langevin(system, temperature=0.5, friction=0.7)
    path = bm.Recorded(np.zeros((20, 1)), seed=4)
    drawn = np.asarray(path.increment(counter(2), counter(5), made.channels, H, clipped=made.path_channels))
    np.testing.assert_array_equal(drawn[1:], np.asarray(bm.Wiener(4).increment(counter(2), counter(5), made.channels, H))[1:])
    assert drawn[0] == 0


def choose(path, steps: int = 10, trajectories: int = 1, step: float = H):
    return unwrap(chosen_path)(None, path, scheme(), step=step, steps=steps, trajectories=trajectories)


@pytest.mark.parametrize(
    ("path", "arguments", "words_"),
    [
        (7, {}, "given as seed="),
        (np.zeros((3, 2)), {}, r"Recorded\(data\)"),
        (bm.Recorded(np.zeros((5, 2))), {}, "asks for step 10"),
        (bm.Recorded(np.zeros((20, 2))).shift(-1), {}, "asks for step -1"),
        (bm.Recorded(np.zeros((2, 20, 2))), {"trajectories": 3}, "trajectory 2"),
        (bm.Recorded(np.zeros((20, 2)), step=0.2), {}, "recorded with a step of 0.2"),
        (bm.FractionalBrownian(hurst=0.6, steps=8), {}, "needs more"),
        (bm.OrnsteinUhlenbeck(correlation_time=1e5), {}, "function of t"),
        (bm.Jumps(rate=100.0), {}, "smaller step"),
    ],
    ids=str,
)
def test_a_path_that_cannot_drive_a_run_is_refused(path, arguments, words_):
    with pytest.raises(DomainError, match=words_):
        choose(path, **arguments)


def test_wrong_paths_are_refused():
    with pytest.raises(ShapeError, match="3 channels"):
        choose(bm.Recorded(np.zeros((20, 3))))
    with pytest.raises(DomainError, match="between ½ and 1"):
        bm.FractionalBrownian(hurst=0.4, steps=8)
    with pytest.raises(DomainError, match="rate must be"):
        bm.Jumps(rate=-1.0)
    with pytest.raises(DomainError, match="correlation_time must be"):
        bm.OrnsteinUhlenbeck(correlation_time=0.0)
    with pytest.raises(DomainError, match="finite"):
        bm.Recorded(np.array([[np.nan]]))
    circling = bm.mechanical(bm.Euclidean(2), random_force=lambda q, v: jnp.array([[-v[1], v[0]]]))
    with pytest.raises(DomainError, match="flow of its noise"):
        unwrap(chosen_path)(None, bm.Jumps(rate=1.0), bm.Midpoint(circling), step=H, steps=1, trajectories=1)


def test_a_long_fractional_path_is_a_short_program():
    """4096 steps are 1932 lines of machine code, in which entries of the root are read from a table. Folded one by one they took 17 minutes."""
    path = bm.FractionalBrownian(1, hurst=0.7, steps=4096)
    plan = request(scheme(), start(), step=H, steps=4, trajectories=2, path=path).engine_plan
    written = write(plan.task, 4, "fused")
    assert isinstance(written, Written), written
    assert len(written.text.splitlines()) < 4096
