"""Diffusion by Einstein, by Green and Kubo and by answers to a force that stays and to one of a step: one number, with errors that cover."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles import moments
from bismut.errors import BismutError, DomainError
from bismut.response.displacements import Spread, Summary, _fluctuations
from bismut.response.pushed import bodies_pushed
from bismut.response.transport import Estimate, Transport, _agree


def rotor(strength, friction=1.0):
    system = bm.mechanical(bm.Circle(), potential=lambda q, parameters: -parameters["g"] * jnp.sum(jnp.cos(q)), parameters={"g": strength})
    scheme = bm.Langevin(system, temperature=1.0, friction=friction)
    return scheme, scheme.start(system.space.origin(), temperature=1.0)


def within(measured, exact, sure=4.0):
    """Every way within so many standard errors, each a false alarm of 6e-5, and what a window of 8 correlation times cuts off, e⁻⁸."""
    return {name: (one.trace, exact) for name, one in measured.ways.items() if abs(one.trace[0] - exact) > sure * one.trace[1] + 4e-4 * exact} == {}


def test_a_rotor_diffuses_as_its_spectrum_says():
    """V = −½ cos q: D = 0.8149716670 (γ = 1)."""
    measured = bm.transport(*rotor(0.5), step=0.1, steps=2000, burn_in=100, trajectories=256, every=2, seed=4)
    assert set(measured.ways) == {"einstein", "green_kubo", "response", "transient"}
    assert set(measured.half) == {"einstein", "green_kubo", "transient"}
    assert measured.agree
    assert not measured.doubt
    assert within(measured, 0.8149716670)
    assert all(one.trace[1] < 0.06 for one in measured.ways.values())
    assert "the ways agree" in repr(measured)


def test_free_motion_of_a_point_has_the_factor_of_the_splitting_in_every_way():
    """D = (kT/Γ)(γh/2)coth(γh/2), 1.313 at γh = 2: no way sees kT/Γ."""
    system = bm.mechanical(bm.Euclidean(2), mass=2.0, potential=lambda q: 0.0 * q @ q)
    scheme = bm.Langevin(system, temperature=0.5, friction=4.0)
    start = scheme.start(jnp.zeros(2), temperature=0.5)
    measured = bm.transport(scheme, start, step=1.0, steps=1000, trajectories=256, every=1, lags=40, seed=2)
    assert measured.value.shape == (2, 2)
    assert within(measured, 0.5 / 4.0 / np.tanh(1.0))
    einstein = measured.ways["einstein"]
    assert abs(einstein.value[0, 1]) < 5 * einstein.stderr[0, 1]
    assert np.allclose(measured.ways["response"].value, 0.125 / np.tanh(1.0) * np.eye(2), atol=1e-6)  # both forces see the same noise: no scatter


COARSE = {  # free motion at γh = 2: space, mass, what else the scheme is given, steps between lags
    "BAOAB": (bm.Euclidean(2), 2.0, {}, 1),
    "ABOBA": (bm.Euclidean(2), 2.0, {"splitting": bm.ABOBA}, 1),
    "OBABO": (bm.Euclidean(2), 2.0, {"splitting": bm.OBABO}, 2),
    "GJI": (bm.Euclidean(2), 2.0, {"splitting": bm.GJI}, 3),
    "GJII": (bm.Euclidean(2), 2.0, {"splitting": bm.GJII}, 1),
    "exact": (bm.Euclidean(2), 2.0, {"transport": "exact"}, 3),
    "OBABO exact": (bm.Euclidean(2), 2.0, {"splitting": bm.OBABO, "transport": "exact"}, 1),
    "tensor": (bm.Euclidean(2), 2.0, {"splitting": bm.OBABO, "friction": jnp.array([[4.0, 1.0], [1.0, 3.0]])}, 1),
    "bodies": (bm.Euclidean(2) ** 3, 2.0, {"transport": "exact"}, 2),
    "rotations": (bm.SO3(), 100.0, {"splitting": bm.OBABO}, 2),
    "rotations exact": (bm.SO3(), 100.0, {"transport": "exact"}, 1),
}


@pytest.mark.parametrize("name", COARSE)
def test_green_and_kubo_agree_with_einstein_whatever_a_step_ends_with(name):
    """D = kT Γ⁻¹ x coth x, x = hΓM⁻¹/2, or kT/Γ where transport is exact, in both ways within 4.5 standard errors: a false alarm of 7e-6 each.

    Of the momentum at the end of a step Green–Kubo would make 1/b or x/sinh x of it, 14 % too much and 15 % too little here.
    """
    space, mass, given, every = COARSE[name]
    system = bm.mechanical(space, mass=mass, potential=lambda q: 0.0 * jnp.sum(q))
    scheme = bm.Langevin(system, temperature=0.5, **({} if "friction" in given else {"rate": 2.0}), **given)
    start = scheme.start(space.origin(), temperature=0.5)
    measured = bm.transport(scheme, start, step=1.0, steps=1200, trajectories=100, every=every, lags=24, window=6.0, seed=3, response=False)
    d = len(measured.value)
    friction = np.asarray(given.get("friction", 2.0 * mass * np.eye(d)))
    rates, axes = np.linalg.eigh(friction)
    pace = 1.0 if "transport" in given or name.startswith("GJ") else rates / (2 * mass) / np.tanh(rates / (2 * mass))
    exact = 0.5 * (axes * pace / rates) @ axes.T
    assert set(measured.ways) == {"einstein", "green_kubo"}
    assert measured.agree
    for way in measured.ways.values():
        assert np.all(np.abs(way.value - exact) < 4.5 * way.stderr)
        assert way.trace[1] < 0.02 * np.trace(exact) / d


@pytest.mark.parametrize("name", ["BAOAB", "ABOBA", "OBABO", "GJI", "GJII", "exact", "OBABO exact", "tensor", "rotations exact"])
def test_what_a_force_moves_in_one_step_is_exact_for_free_motion(name):
    """D = kT Γ⁻¹ x coth x, x = hΓM⁻¹/2, or kT/Γ where transport is exact, as of a force that stays. Both see one noise: no scatter.

    A kick of the momentum instead would make 15 % less of it for OBABO; what the window cuts off is below e⁻¹⁸.
    """
    space, mass, given, _ = COARSE[name]
    system = bm.mechanical(space, mass=mass, potential=lambda q: 0.0 * jnp.sum(q))
    scheme = bm.Langevin(system, temperature=0.5, **({} if "friction" in given else {"rate": 2.0}), **given)
    start = scheme.start(space.origin(), temperature=0.5)
    measured = bm.transport(scheme, start, step=1.0, steps=100, trajectories=8, every=1, lags=40, window=19.0, seed=3)
    friction = np.asarray(given.get("friction", 2.0 * mass * np.eye(len(measured.value))))
    rates, axes = np.linalg.eigh(friction)
    pace = 1.0 if "transport" in given or name.startswith("GJ") else rates / (2 * mass) / np.tanh(rates / (2 * mass))
    exact = 0.5 * (axes * pace / rates) @ axes.T
    transient, error = measured.ways["transient"].value, 1e-6 if space == bm.Euclidean(2) else 3e-3  # Cayley's rotations are of order h²
    np.testing.assert_allclose(transient, exact, atol=error * np.abs(exact).max())


def test_a_force_in_one_step_moves_overdamped_motion():
    """V = −½ cos q: D = kTM/I₀(½)² (Lifson & Jackson). At first a force moves things by 1."""
    from scipy.special import i0

    system = bm.mechanical(bm.Circle(), potential=lambda q: -0.5 * jnp.sum(jnp.cos(q)))
    scheme = bm.Brownian(system, temperature=1.0, mobility=1.0)
    measured = bm.transport(
        scheme, scheme.start(jnp.zeros(())), step=0.05, steps=3000, burn_in=100, trajectories=400, every=4, lags=60, window=3.0, seed=1
    )
    value, error = measured.ways["transient"].trace
    assert measured.agree
    assert error < 0.02
    assert abs(value - 1 / i0(0.5) ** 2) < 4 * error
    assert abs(value - 1) > 4 * error


def test_green_and_kubo_have_the_slope_of_einstein():
    """2 G(τ) = [MSD(τ) − MSD(τ − h)]/h of one long trajectory in a force, up to what its ends contribute: much closer than either is to D."""
    scheme, start = rotor(2.0)
    spread = bm.simulate(scheme, start, step=0.4, steps=20_000, trajectories=2, seed=5, observe={"spread": Spread(None, None, 9, every=1)}).spread
    slopes = np.asarray(spread.einstein_mean)[1:5]  # [MSD(2τ) − MSD(τ)]/2τ
    means = [np.mean(np.asarray(spread.green_kubo_mean)[k + 1 : 2 * k + 1]) for k in range(1, 5)]
    np.testing.assert_allclose(means, slopes, rtol=2e-3)


def test_components_are_compared_one_by_one():
    """Equal means do not hide different components; and of ways that do agree, 10⁻⁴ are said not to: 2 of 2000 tensors have a probability of 0.02."""
    rng = np.random.default_rng(1)
    n, size, exact = 12, 0.1, np.array([[1.0, 0.4], [0.4, 2.0]])

    def way(mean):
        each = mean + size * rng.normal(size=(n, *mean.shape))
        root = np.sqrt(n)
        return Estimate(each.mean(0), each.std(0, ddof=1) / root, float(np.trace(each, axis1=1, axis2=2).std(ddof=1)) / 2 / root, 1.0)

    assert sum(not _agree({name: way(exact) for name in "abc"}, n) for _ in range(2000)) <= 1
    for change in ([[0.0, 0.5], [0.0, 0.0]], [[0.5, 0.0], [0.0, -0.5]]):
        assert not _agree({"a": way(exact), "b": way(exact + np.array(change))}, n)


def test_the_error_of_a_mean_knows_that_components_are_correlated():
    """One component seen twice: its mean is itself, and no more certain."""
    scheme, start = rotor(0.5)
    twice = lambda v: jnp.stack([jnp.sum(v), jnp.sum(v)])
    settings = {"step": 0.1, "steps": 400, "trajectories": 32, "every": 2, "lags": 20, "seed": 4}
    one, two = (bm.transport(scheme, start, part=part, **settings) for part in (None, twice))
    for name, way in two.ways.items():
        assert way.trace[1] == pytest.approx(way.stderr[0, 0], rel=1e-9), name
        if name not in ("response", "transient"):  # whose force would push both
            assert way.trace == pytest.approx(one.ways[name].trace, rel=1e-9), name


def test_its_picture(tmp_path):
    measured = bm.transport(*rotor(0.5), step=0.1, steps=400, burn_in=50, trajectories=32, every=2, lags=40, seed=4)
    figure = measured.figure(tmp_path / "rotor.png")
    (axes,) = figure.axes
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert labels == {"Einstein, slope from τ to 2τ", "Green–Kubo, integral to τ", "linear response", "response to a force of one step", "window"}
    drawn = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    known = np.isfinite(measured.curves["einstein"]) & (measured.curves["lag"] > 0)
    np.testing.assert_array_equal(drawn["Einstein, slope from τ to 2τ"], measured.curves["einstein"][known])
    assert (tmp_path / "rotor.png").stat().st_size > 10_000


def test_overdamped_rotations_have_a_tensor_and_no_velocity():
    """Free body with D = kT M per axis."""
    system = bm.mechanical(bm.SO3(), mass=1.0, potential=lambda R: 0.0 * R[2, 2])
    scheme = bm.Brownian(system, temperature=1.0, mobility=jnp.array([0.5, 1.0, 2.0]))
    measured = bm.transport(scheme, scheme.start(jnp.eye(3)), step=0.01, steps=2000, trajectories=64, every=10, lags=20, seed=5, response=False)
    assert "no velocity" in measured.missing["green_kubo"]
    off = (np.diag(measured.value) - np.array([0.5, 1.0, 2.0])) / np.diag(measured.stderr)
    assert np.all(np.abs(off) < 4.5)


FREE = {  # of a body without forces: how it moves, D, what the step takes, and the shortest run that shows it
    "so3": ("Brownian", 1.0, 0.0, {"step": 0.02, "steps": 2000, "lags": 8}),
    "fast": ("Brownian", 20.0, 0.0, {"step": 0.001, "steps": 2000, "lags": 8}),
    "se3": ("Brownian", 1.0, 1e-3, {"step": 0.01, "steps": 1000, "lags": 8, "part": lambda v: v[2:4]}),
    "inertia": ("Langevin", 0.2, 2e-4, {"step": 0.02, "steps": 8000, "lags": 40}),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FREE)
def test_turns_about_different_axes_do_not_add_up_unless_every_step_is_added(name):
    """Lags of many steps: D = kT M of free rotation to 2e-4 of it by the response, whose error is smaller. With log R between lags it is 0.955 of it.

    Rotations of SE3 carry its translations along, 1e-3 at this step; and Cayley's drift is too short by 5h²kT/12m.
    """
    kind, exact, bias, settings = FREE[name]
    space = bm.SE3() if name == "se3" else bm.SO3()
    system = bm.mechanical(space, mass=1.0, potential=lambda q: 0.0 * (q[1][0] if name == "se3" else q[2, 2]))
    if kind == "Brownian":
        scheme = bm.Brownian(system, temperature=1.0, mobility=exact)
        start = scheme.start(space.origin())
    else:
        scheme = bm.Langevin(system, temperature=1.0, friction=1 / exact, splitting=bm.GJI)
        start = scheme.start(space.origin(), temperature=1.0)
    measured = bm.transport(scheme, start, trajectories=16, seed=1, **settings)
    assert measured.agree
    assert not measured.doubt
    value, error = measured.ways["response"].trace
    assert error < 2e-4 * exact
    assert abs(value - exact) < (bias + 2e-4) * exact


def test_turns_are_counted_in_every_step_however_far_lags_are_apart():
    """A free rotor turns by 6 radians, a standard deviation, in 64 steps: with lags so far apart each way has D = 10 within 4.5 standard errors."""
    system = bm.mechanical(bm.Circle(), potential=lambda q: 0.0 * q)
    scheme = bm.Langevin(system, temperature=1.0, friction=0.1)
    start = scheme.start(jnp.zeros(()), temperature=1.0)
    measured = bm.transport(scheme, start, step=0.1, steps=8000, trajectories=64, every=64, lags=32, window=80.0, seed=1)
    assert measured.agree
    assert within(measured, 10.0, 4.5)
    assert all(one.trace[1] < 1.3 for one in measured.ways.values())


def test_a_step_in_which_an_angle_turns_half_way_is_doubted():
    system = bm.mechanical(bm.SO3(), mass=1.0, potential=lambda R: 0.0 * R[2, 2])
    scheme = bm.Brownian(system, temperature=1.0, mobility=1.0)
    measured = bm.transport(scheme, scheme.start(jnp.eye(3)), step=0.5, steps=40, lags=5, trajectories=4, response=False)
    assert "turn half way in one step" in measured.doubt


def test_unlike_bodies_are_each_pushed():
    """Γ = 1 and 3: the mean over bodies is ⅔ by every way, and the answer to a force is not that of the first body alone."""
    system = bm.mechanical(bm.Euclidean(1) ** 2, mass=1.0, potential=lambda q: 0.0 * jnp.sum(q * q))
    scheme = bm.Langevin(system, temperature=1.0, friction=jnp.array([[1.0], [3.0]]), splitting=bm.GJI)
    start = scheme.start(jnp.zeros((2, 1)), temperature=1.0)
    measured = bm.transport(scheme, start, step=0.2, steps=800, trajectories=100, every=1, lags=100, seed=1)
    assert measured.agree
    assert measured.best == "response"
    assert measured.value[0, 0] == pytest.approx(2 / 3, rel=1e-3)
    assert within(measured, 2 / 3, 4.5)


def test_one_of_many_bodies_stands_for_all_only_if_they_are_alike():
    free = bm.mechanical(bm.Euclidean(3) ** 8, mass=1.0, potential=lambda q: 0.0 * jnp.sum(q * q))
    unlike = jnp.linspace(1.0, 2.0, 8)[:, None] * jnp.ones((8, 3))
    pushes = {}
    for name, friction in (("like", jnp.full((8, 3), 1.5)), ("unlike", unlike)):
        scheme = bm.Langevin(free, temperature=1.0, friction=friction)
        picked = Spread(None, None, 4).picked
        pushes[name] = bodies_pushed(scheme, scheme.start(jnp.zeros((8, 3)), temperature=1.0), picked)
    assert pushes["like"] == (1, "")
    assert pushes["unlike"][0] == 0
    assert "their frictions differ" in pushes["unlike"][1]
    for masses, count in ((np.ones(4), 1), (np.arange(1.0, 5.0), 0)):
        bodies = bm.rigid_bodies(mass=masses, inertia=np.tile([1.0, 2.0, 3.0], (4, 1)), potential=lambda x, R: 0.0 * jnp.sum(x))
        scheme = bm.Langevin(bodies, temperature=1.0, friction=1.0)
        assert bodies_pushed(scheme, scheme.start(bodies.space.origin(), temperature=1.0), picked)[0] == count


def test_ways_that_do_not_agree_are_not_hidden_by_a_small_error():
    way = lambda value, error: Estimate(np.array([[value]]), np.array([[error]]), error, 1.0)
    curves = {"lag": np.arange(3.0)}
    apart = Transport({"einstein": way(1.0, 0.1), "response": way(3.0, 0.0)}, {}, 1.0, 1.0, {}, False, "", curves)
    assert apart.value[0, 0] == 1.0
    assert "by einstein; THE WAYS DO NOT AGREE" in repr(apart)


def test_a_mean_drift_is_no_diffusion():
    """U = −q with Γ = 1: drift 1 and D = 1 by each way; the drift is reported. Its square would make 16 of it."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: -q[0])
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0, splitting=bm.GJI)
    start = scheme.start(jnp.zeros(1), temperature=1.0)
    measured = bm.transport(scheme, start, step=0.1, steps=1000, burn_in=100, trajectories=200, seed=1)
    assert measured.agree
    assert "mean drift" in measured.doubt
    assert within(measured, 1.0, 4.5)
    assert all(one.trace[1] < 0.2 for one in measured.ways.values())


def test_what_the_drift_takes_away_has_a_covariance():
    """The errors of what is left when v v τ was subtracted are those of the slope of a jackknife over trajectories, to 1/n."""
    rng = np.random.default_rng(2)
    n, d, lags = 400, 2, 5
    both = rng.normal(size=(n, 2, lags, d * d + 1))
    both[..., -1] = both[..., [0, 3]].mean(-1)
    drift = np.array([1.0, -0.5, 0.9, -0.4]) + 0.3 * rng.normal(size=(n, 2 * d)) + 0.2 * both[:, 0, 1, :4]
    lag = np.arange(lags) * 0.7

    def summary(rows):
        own, off = drift[rows] - drift[rows].mean(0), both[rows] - both[rows].mean(0)
        cross = np.einsum("nklr,ni->klri", off, own)
        return Summary(moments.gather(both[rows]), moments.gather_joint(drift[rows], np.ones(len(own), bool)), cross)

    value, error = _fluctuations(summary(np.arange(n)), lag, lag)
    left = np.stack([_fluctuations(summary(np.delete(np.arange(n), i)), lag, lag)[0] for i in range(n)])
    np.testing.assert_allclose(error, np.sqrt((n - 1) / n * ((left - left.mean(0)) ** 2).sum(0)), rtol=0.02)
    halves = [summary(np.arange(150)), summary(np.arange(150, n))]
    merged = Spread(None, None, lags).merge(*halves)
    for one, other in zip(_fluctuations(merged, lag, lag), (value, error), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_the_error_of_an_answer_knows_what_is_left_of_the_transient():
    """Without noise in the answer nothing else is uncertain: a bounded oscillator, D = 0, and a free rotor read after two correlation times."""
    oscillator = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q)
    rotor = bm.mechanical(bm.Circle(), potential=lambda q: 0.0 * q)
    for system, friction, exact, lags in ((oscillator, 1.0, 0.0, 100), (rotor, 0.1, 10.0, 100)):
        scheme = bm.Langevin(system, temperature=1.0, friction=friction)
        start = scheme.start(system.space.origin(), temperature=1.0)
        measured = bm.transport(scheme, start, step=0.1, steps=8000, burn_in=100, trajectories=16, seed=1, lags=lags, every=4)
        value, error = measured.ways["response"].trace
        assert 0 < error < 0.2
        assert abs(value - exact) < 2 * error
        value, error = measured.ways["transient"].trace  # of what two correlation times leave, e⁻² of the rotor's
        assert abs(value - exact) < 2 * error


def test_a_flux_of_ones_own_is_integrated_and_scaled():
    """J = p of the free particle, scale 3: three times its diffusion; which force drives it is not known."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.0 * q @ q)
    scheme = bm.Langevin(system, temperature=1.0, friction=2.0)
    start = scheme.start(jnp.zeros(1), temperature=1.0)
    measured = bm.transport(scheme, start, step=0.1, steps=1000, trajectories=256, every=1, lags=100, seed=3, flux=lambda s: s.p, scale=3.0)
    assert "not known" in measured.missing["response"]
    assert within(measured, 3 * 0.5 * 0.1 / np.tanh(0.1))


def test_in_free_flight_no_window_is_long_enough():
    """Γ = 0: ρ = 1 at all lags, so that a window is half a correlation time however long it is. No verdict, and no answer to a force."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.0 * q @ q)
    scheme = bm.Langevin(system, temperature=1.0, friction=0.0)
    start = scheme.start(jnp.zeros(1), temperature=1.0)
    measured = bm.transport(scheme, start, step=0.1, steps=400, trajectories=64, every=2, lags=20, seed=1)
    assert measured.agree is None
    assert "TOO SHORT TO TELL" in repr(measured)
    assert "the ways agree" not in repr(measured)
    assert "shorter than 3 correlation times" in measured.doubt
    assert "nothing brings the start into equilibrium" in measured.doubt
    assert "heats" in measured.missing["response"]


WRONG = {  # of transport: what is given, and what the refusal says
    "part that is text": ({"part": "x"}, "part must be a function of a displacement"),
    "part beyond the last": ({"part": lambda v: v[7]}, "do not have: index 7 is out of bounds"),
    "flux that is text": ({"flux": "x"}, "flux must be a function of a State"),
    "flux that is NaN": ({"flux": lambda s: jnp.sqrt(-1.0 - s.p**2)}, "The flux is NaN or infinite"),
    "flux that is constant": ({"flux": lambda s: 3.0 + 0.0 * s.p}, "The flux does not fluctuate: it is .3. 3.."),
    "scale": ({"scale": float("nan")}, "scale must be one finite number, got nan"),
    "window": ({"window": "long"}, "window must be a positive number"),
    "trajectories": ({"trajectories": 1}, "trajectories must be a whole number ≥ 2, got 1. Errors"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_has_no_transport_is_refused(what):
    system = bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.0 * q @ q)
    scheme = bm.Langevin(system, temperature=1.0, friction=2.0)
    change, said = WRONG[what]
    with pytest.raises(BismutError, match=said):
        bm.transport(scheme, scheme.start(jnp.zeros(2), temperature=1.0), **{"step": 0.1, "steps": 200, "trajectories": 8, "lags": 20} | change)


def test_a_window_that_is_too_short_is_reported():
    measured = bm.transport(*rotor(0.5), step=0.1, steps=500, trajectories=64, every=1, lags=20, seed=4, response=False)
    assert "correlation times of the flux" in measured.doubt
    with pytest.raises(DomainError, match="longest lag"):
        bm.transport(*rotor(0.5), step=0.1, steps=50, trajectories=64, every=1, lags=100)


def test_many_components_need_a_part():
    system = bm.mechanical(bm.Euclidean(8), potential=lambda q: 0.0 * q @ q)
    scheme = bm.Langevin(system, temperature=1.0, friction=2.0)
    with pytest.raises(DomainError, match="part="):
        bm.transport(scheme, scheme.start(jnp.zeros(8), temperature=1.0), step=0.1, steps=1000)


@pytest.mark.long
def test_two_bound_particles_diffuse_together():
    """Each of a pair on a spring, and their mean, diffuses by kT/(Γ₁ + Γ₂); a force on the mean is shared by both."""
    system = bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.5 * (q[0] - q[1]) ** 2)
    scheme = bm.Langevin(system, temperature=1.0, friction=jnp.array([1.0, 3.0]), splitting=bm.GJI)
    start = scheme.start(jnp.zeros(2), temperature=1.0)
    both = bm.transport(
        scheme, start, step=0.2, steps=1000, burn_in=50, trajectories=256, every=1, window=8.0, seed=6, part=lambda v: 0.5 * (v[0] + v[1])
    )
    assert both.value.shape == (1, 1)
    assert both.agree
    assert within(both, 0.25)
    with pytest.raises(DomainError, match="half of all lags"):
        bm.transport(scheme, start, step=0.2, steps=1000, trajectories=4, every=1, window=80.0)


@pytest.mark.long
def test_a_screw_has_a_coupled_tensor():
    """D = kT M (6, 6) of a body whose rotation drives its motion, in its own frame."""
    mobility = np.diag([0.5, 0.6, 0.7, 0.3, 0.4, 0.5])
    mobility[2, 5] = mobility[5, 2] = 0.4
    system = bm.mechanical(bm.SE3(), mass=1.0, potential=lambda q: 0.0 * q[1][0])
    scheme = bm.Brownian(system, temperature=1.0, mobility=jnp.asarray(mobility))
    measured = bm.transport(scheme, scheme.start(bm.SE3().origin()), step=0.01, steps=500, trajectories=64, every=2, lags=10, seed=5, response=False)
    off = (measured.value - mobility) / measured.stderr
    assert np.abs(off).max() < 5  # 36 entries: a false alarm of 2e-5
    assert measured.value[2, 5] > 0.3


@pytest.mark.slow
def test_a_screw_with_inertia_falls_short_of_its_mobility():
    """In the frame of a body that turns, a force answers by less than kT Γ⁻¹, in proportion to the mass: m v̇ = m v × ω − (Γ(ω, v)) + F + noise.

    These six equations are closed. Integrated by themselves, without points and without a group, they give 0.6960, −0.1900, 0.4753 ± 0.0002 at m = ¼
    where kT Γ⁻¹ has 0.7, −0.2, 0.5 (and for m = 1/16 0.6989, −0.1973, 0.4934). Cayley's drift takes 5h²kT/12m = 0.4 % more.
    """
    mobility = np.diag([0.5, 0.6, 0.7, 0.3, 0.4, 0.5])
    mobility[2, 5] = mobility[5, 2] = -0.2
    system = bm.mechanical(bm.SE3(), mass=0.25, potential=lambda q: 0.0 * q[1][0])
    scheme = bm.Langevin(system, temperature=1.0, friction=jnp.asarray(np.linalg.inv(mobility)), splitting=bm.GJI)
    settings = {"step": 0.05, "steps": 300, "burn_in": 50, "trajectories": 128, "every": 1, "lags": 42, "window": 1.0, "seed": 1}
    measured = bm.transport(scheme, scheme.start(bm.SE3().origin(), temperature=1.0), **settings)
    assert measured.agree
    response = measured.ways["response"]
    for (a, b), exact in {(2, 2): 0.6960, (2, 5): -0.1900, (5, 2): -0.1900, (5, 5): 0.4753}.items():
        off, error = response.value[a, b] - exact, response.stderr[a, b]
        assert abs(off) < 4.5 * error + 0.01 * abs(exact), (a, b)
        assert abs(response.value[a, b] - mobility[a, b]) > 10 * error, (a, b)


ROTORS = {  # strength, friction: exact, step, steps, trajectories, steps between lags, lags, error of the transient way: pairs part over barriers
    (0.5, 1.0): (0.8149716670, 0.05, 20_000, 20_000, 4, 100, 0.003),
    (1.0, 1.0): (0.4826655234, 0.05, 20_000, 16_000, 4, 100, 0.01),
    (0.5, 0.1): (5.01256271, 0.1, 40_000, 28_000, 16, 140, 0.03),
}


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "friction"), ROTORS)
def test_rotors_to_three_per_mille(strength, friction):
    """Each way within four standard errors of 0.3 % or less, a false alarm of 6e-5 each; the bias of the step is below 5e-4."""
    exact, step, steps, trajectories, every, lags, parted = ROTORS[strength, friction]
    settings = {"step": step, "steps": steps, "burn_in": 400, "trajectories": trajectories, "every": every, "lags": lags, "seed": 7}
    measured = bm.transport(*rotor(strength, friction), **settings)
    print(measured)
    assert measured.agree
    assert within(measured, exact)
    assert all(one.trace[1] <= (parted if name == "transient" else 0.003) * exact for name, one in measured.ways.items())


@pytest.mark.slow
def test_errors_cover():
    """200 seeds of the rotor V = −½ cos q: errors are neither too small nor too large, in any way.

    |D − exact| > 2 stderr as seldom as a binomial with Student's 4.8 %, false-alarm rate 1e-4 for each way; the spread of (D − exact)/stderr is over
    0.75, of a normal variable a false alarm of 1e-6; and the mean of D is within 4 of its own errors, 6e-5, of which the step and the window take
    less than a tenth.
    """
    from scipy.stats import binom
    from scipy.stats import t as student

    settings = {"step": 0.1, "steps": 1000, "burn_in": 100, "trajectories": 100, "every": 2}
    runs = [bm.transport(*rotor(0.5), seed=seed, **settings) for seed in range(200)]
    for name in ("einstein", "green_kubo", "response", "transient"):
        values, errors = np.transpose([run.ways[name].trace for run in runs])
        off = (values - 0.8149716670) / errors
        assert np.sum(np.abs(off) > 2) <= binom.ppf(1 - 1e-4, 200, 2 * student.sf(2, 99)), name
        assert off.std() > 0.75, name
        assert abs(values.mean() - 0.8149716670) < 4 * values.std() / np.sqrt(200), name
    assert sum(run.agree for run in runs) >= 199  # 1e-4 each: two of 200 have a probability of 2e-4
