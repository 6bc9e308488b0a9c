"""ln u is right to 2e−15 relative, cos 2πf and sin 2πf to 2e−15 absolute, on all of their ranges; normals are finite for all words."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np

from bismut.noise.generator import cos_sin_turn, log_unit, two_normals

TOLERANCE = 2e-15
SOURCE = np.random.default_rng(5)
ROOT = np.sqrt(0.5)

log_unit = jax.jit(log_unit)
cos_sin_turn = jax.jit(cos_sin_turn)


def neighbours(x, count=3):
    """x and the floating-point numbers next to it."""
    below, above = [x], [x]
    for _ in range(count):
        below.append(np.nextafter(below[-1], -np.inf))
        above.append(np.nextafter(above[-1], np.inf))
    return np.array([*below[:0:-1], *above])


UNITS = np.concatenate(
    [
        [1.0, 2.0**-64, 2.0**-65, 2.0**-32],
        *(neighbours(x) for x in (0.5, 0.25, ROOT, ROOT / 2, ROOT * 2.0**-40)),
        neighbours(1.0)[:3],
        1 - SOURCE.uniform(0, 1, 300) * 2.0 ** -SOURCE.integers(0, 53, 300),
        SOURCE.uniform(0, 1, 300),
        2.0 ** -SOURCE.uniform(0, 64, 600),
    ]
)
TURNS = np.concatenate(
    [
        np.arange(16) / 16,
        *(neighbours(x) for x in (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)),
        neighbours(1.0)[:3],
        SOURCE.integers(0, 1 << 32, 1000) * 2.0**-32,
        2.0 ** -SOURCE.uniform(0, 60, 200),
    ]
)


def test_logarithm():
    got = np.asarray(log_unit(UNITS))
    with mp.workdps(40):
        exact = [mp.log(mp.mpf(float(u))) for u in UNITS]
        errors = [float(abs(g - e) / abs(e)) if e else abs(g) for g, e in zip(got.tolist(), exact, strict=True)]
    assert max(errors) < TOLERANCE


def test_cosine_and_sine():
    cosine, sine = map(np.asarray, cos_sin_turn(TURNS))
    with mp.workdps(40):
        errors = [
            max(float(abs(c - mp.cospi(2 * mp.mpf(f)))), float(abs(s - mp.sinpi(2 * mp.mpf(f)))))
            for f, c, s in zip(TURNS.tolist(), cosine.tolist(), sine.tolist(), strict=True)
        ]
    assert max(errors) < TOLERANCE


def test_quarter_turns_are_exact():
    cosine, sine = cos_sin_turn(np.array([0.0, 0.25, 0.5, 0.75]))
    assert np.array_equal(cosine, [1, 0, -1, 0])
    assert np.array_equal(sine, [0, 1, 0, -1])


def test_normals_are_finite_for_every_pair_of_words():
    """The largest radius is √(−2 ln 2⁻⁶⁵) = 9.49; u = 1 gives 0."""
    edge = np.array([0, 1, 2, (1 << 31) - 1, 1 << 31, (1 << 32) - 2, (1 << 32) - 1], np.uint32)
    a, b = map(np.ravel, np.meshgrid(edge, edge))
    for dtype in (jnp.float64, jnp.float32):
        x, y = jax.jit(lambda a, b, dtype=dtype: two_normals(a, b, dtype))(a, b)
        assert x.dtype == y.dtype == dtype
        radius = np.hypot(x, y)
        assert np.all(np.isfinite(radius))
        assert np.max(radius) <= np.sqrt(130 * np.log(2)) * (1 + 1e-6)
