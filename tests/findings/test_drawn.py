"""The noise that the engine draws is looked at: each way in which a generator may be wrong is seen, and a right one passes.

A right one is called faulty once in a thousand reports; seeds are fixed.
"""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.noise_law import drawn_increments, noise_law, probabilities
from bismut.findings.statistics import holm_verdicts
from tests.findings import saboteurs


@functools.cache
def bath(count: int = 2, **more) -> bm.Langevin:
    system = bm.mechanical(bm.Euclidean(count), mass=2.0, potential=lambda q: 0.5 * q @ q, **more)
    return bm.Langevin(system, temperature=0.7, rate=1.0)


def judge(path, scheme=None):
    scheme = scheme or bath()
    return holm_verdicts(noise_law(scheme, jnp.zeros(scheme.space.dim, scheme.system.dtype), path, 0.1, 0.0))[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_right_noise_passes(seed):
    assert judge(bm.Wiener(seed)).verdict.value == "pass"


def test_single_precision_and_one_channel_pass():
    assert judge(bm.Wiener(1), bath(1)).verdict.value == "pass"
    assert judge(bm.Wiener(1), bath(2, precision="float32")).verdict.value == "pass"


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        (saboteurs.Strong, "variance"),
        (saboteurs.Cut, "tails"),
        (saboteurs.EqualChannels, "repeats"),
        (saboteurs.Repeating, "repeats"),
        (saboteurs.Twins, "repeats"),
        (saboteurs.Mirrored, "repeats"),
        (saboteurs.Smooth, "successive steps"),
        (saboteurs.HotStarts, "Maxwell starts"),
    ],
)
def test_a_wrong_generator_is_seen(kind, seen):
    finding = judge(kind(3))
    assert finding.verdict.value == "fail"
    assert seen in finding.how.split("wrong: ")[1]


def test_a_scheme_without_noise_says_nothing():
    assert noise_law(bm.Verlet(bath().system), jnp.zeros(2), bm.Wiener(0), 0.1, 0.0) == []


def test_it_is_what_a_run_draws():
    """The increments that a run of the scheme sees, trajectory by trajectory and step by step."""
    z, mode = drawn_increments(bath(), bm.Wiener(5), 0.1)
    assert mode == "native"
    path = np.moveaxis(np.asarray(bm.Wiener(5).increments(np.arange(4), 8, 2, 0.1)), 0, 1)
    np.testing.assert_allclose(z[:4, :8] * np.sqrt(0.1), path, rtol=1e-14)


def test_probabilities_are_probabilities():
    """Of normals by another generator each law is below 5 % about once in twenty times; in 12 or more of 60 once in 10⁴ times."""
    rng = np.random.default_rng(1)
    rows = [probabilities(rng.normal(size=(64, 32, 3))) for _ in range(60)]
    for law in rows[0]:
        assert sum(row[law] < 0.05 for row in rows) <= 11, law
