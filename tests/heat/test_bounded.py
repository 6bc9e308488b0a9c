"""A bounded path bounds the increments of stochastic potentials, and neither the normals of the bath nor those of acceptance."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.programs.evaluation import evaluate

still = bm.mechanical(bm.Euclidean(2), potential=lambda q: jnp.cos(q[0]) * q[1] + 0.5 * q @ q)
shaken = bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.5 * q @ q, noise=lambda q: jnp.sin(q[:1] + q[1]))
H, STEPS = 0.5, 60
LIMIT = np.sqrt(H) * 2.0  # A_h = √(4 max(|ln h|, 1)) = 2: one normal in 22 lies beyond


def runs(scheme, path):
    """The same trajectories one by one, together and averaged."""
    start = scheme.start(jnp.array([0.3, 0.2]), momentum=jnp.array([0.4, -0.3]))
    one = np.asarray(bm.trajectory(scheme, start, step=H, steps=STEPS, path=path).q)[-1]
    many = np.asarray(bm.simulate(scheme, start, step=H, steps=STEPS, trajectories=2, path=path).final.q)[0]
    mean = evaluate(lambda start: bm.average(lambda state: state.q, scheme, start, step=H, steps=STEPS, trajectories=1, path=path), start)
    return np.stack([one, many, mean])


@pytest.mark.parametrize("splitting", [pytest.param(bm.BAOAB, marks=pytest.mark.slow), bm.Metropolised()], ids=str)
def test_a_bath_is_not_bounded(splitting):
    """The run on the bounded path is the run on the free one, to the bit."""
    scheme = bm.Langevin(still, 1.0, 1.0, splitting)
    assert scheme.path_channels == 0
    assert np.array_equal(runs(scheme, bm.Wiener(1, bounded=True)), runs(scheme, bm.Wiener(1)))


@pytest.mark.parametrize(("scheme", "clipped"), [(bm.Verlet(shaken), 1), (bm.Langevin(shaken, 1.0, 1.0), 1), (bm.Langevin(shaken, 1.0), 0)])
def test_stochastic_potentials_are(scheme, clipped):
    """The first channels, as many as the scheme says; not those of noise that is the bath itself."""
    assert scheme.path_channels == clipped
    drawn = lambda path: path.increments(0, STEPS, scheme.channels, H, clipped=scheme.path_channels)
    free, bounded = (np.asarray(evaluate(drawn, bm.Wiener(1, bounded=bounded))) for bounded in (False, True))
    assert (np.abs(free) > LIMIT).any(0).all()
    np.testing.assert_allclose(bounded[:, :clipped], np.clip(free[:, :clipped], -LIMIT, LIMIT), rtol=1e-15)
    assert np.array_equal(bounded[:, clipped:], free[:, clipped:])


def test_the_kick_of_a_run_is_bounded():
    """Where there is noise beside the bath, a bounded path gives another run, the same for all three ways to make it."""
    scheme = bm.Langevin(shaken, 1.0, 1.0)
    free, bounded = runs(scheme, bm.Wiener(1)), runs(scheme, bm.Wiener(1, bounded=True))
    np.testing.assert_allclose(bounded, bounded[:1].repeat(3, 0), rtol=1e-9)
    assert np.abs(free - bounded).max() > 1e-3


def test_a_seed_is_one_path_whatever_the_scheme():
    """A body with random turns on T*SO(3) and its reduction to so(3)*, from one seed, have one momentum; at h = 0.5 one increment in 22 is beyond two
    standard deviations, where a bounded path cuts. A bounded path is named in the header."""
    inertia = jnp.array([1.0, 2.0, 2.5])
    H = lambda mu: 0.5 * mu @ (mu / inertia)
    noise = lambda mu: 0.1 * mu
    whole = bm.HamiltonianMidpoint(bm.System(bm.SO3(), hamiltonian=lambda q, p: H(p), noise_hamiltonian=lambda q, p: noise(p)))
    reduced = bm.HamiltonianMidpoint(bm.LiePoisson(bm.SO3(), H, noise))
    assert reduced.implicit_noise
    mu = jnp.array([0.2, 0.9, -0.4])
    run = lambda scheme, start, **drive: bm.simulate(scheme, start, step=0.5, steps=STEPS, trajectories=2, **drive)
    full, alone = run(whole, whole.start(jnp.eye(3), momentum=mu), seed=6), run(reduced, reduced.start(momentum=mu), seed=6)
    np.testing.assert_allclose(full.final.p, alone.final.p, atol=1e-12)
    bounded = run(reduced, reduced.start(momentum=mu), path=bm.Wiener(6, bounded=True))
    assert np.abs(bounded.final.p - alone.final.p).max() > 1e-3
    assert "seed 6, increments bounded" in repr(bounded)
    assert "bounded" not in repr(alone)
