"""What runs otherwise than it may be meant is said: noise beside a bath, and steps over which free diffusion is too fast."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutWarning

shaken = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q, noise=lambda q: 0.6 * q)
plain = bm.mechanical(bm.Euclidean(1))


def run(scheme, **more):
    return bm.simulate(scheme, scheme.start(jnp.zeros(1), temperature=0.3), step=0.1, steps=40, trajectories=200, seed=1, **more)


def test_noise_beside_a_bath_is_told():
    """In a warning where the scheme is made, in the header of its result, and as a temperature that fails: kT + s²/2γ instead of kT."""
    with pytest.warns(BismutWarning, match="hotter than kT.*own_noise"):
        scheme = bm.Langevin(shaken, 0.3, 1.0)
    result = run(scheme, certify=True)
    assert "note: The system's own noise drives it" in repr(result)
    assert not result.certificate.ok
    assert result.certificate["temperature"].measured == pytest.approx(0.6**2 / (2 * 0.3))
    assert "; noise of the system raises kT by 60%" in result.certificate.short()[1]
    assert "±" not in "".join(result.certificate.short())


def test_warnings_are_about_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        bm.Langevin(shaken, 0.3, 1.0)
        scheme = bm.Langevin(plain, 1.0, rate=1.0)
        bm.simulate(scheme, scheme.start(jnp.zeros(1), temperature=1.0), step=2.0, steps=1)
    assert [one.filename for one in told if one.category is BismutWarning] == [__file__, __file__]


def test_noise_that_is_meant_or_balanced_is_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = bm.Langevin(shaken, 0.3, 1.0, own_noise="drives")
        for silent in (bm.Langevin(shaken, 0.3), bm.Langevin(shaken, 0.3, 0.0), bm.Langevin(shaken, 0.0, 1.0), bm.Langevin(plain, 0.3, 1.0)):
            assert silent.remarks(0.1) == ()
        result = run(asked, certify=True)
    assert "drives it beside the bath" in repr(result)
    assert "temperature" in [finding.law for finding in result.certificate.unmeasured]
    with pytest.raises(ValueError, match='own_noise must be "drives"'):
        bm.Langevin(shaken, 0.3, 1.0, own_noise="heats")


@pytest.mark.parametrize(
    "splitting", [bm.BAOAB, *(pytest.param(s, marks=pytest.mark.slow) for s in (bm.ABOBA, bm.OBABO, bm.GLA(bm.Verlet)))], ids=str
)
def test_free_diffusion_is_too_fast_by_the_factor_that_is_told(splitting):
    """D = (kT/Γ)(γh/2) coth(γh/2) at γh = 2, 1.313 times too fast, within 4 standard errors (false alarms 6e−5); below γh = ½ nothing is said."""
    h, steps, many = 2.0, 100, 4000
    scheme = bm.Langevin(plain, 1.0, rate=1.0, splitting=splitting)
    with pytest.warns(BismutWarning, match=r"γh = 2: without forces positions diffuse 1\.31 times too fast"):
        result = bm.simulate(scheme, scheme.start(jnp.zeros(1), temperature=1.0), step=h, steps=steps, trajectories=many, seed=2)
    assert "1.31 times too fast" in repr(result)
    square = np.asarray(result.final.q)[:, 0] ** 2
    c, factor = np.exp(-h), 1 / np.tanh(1.0)
    # The first steps remember the start: ⟨q²⟩ = 2 D T less what a stationary chain p' = c p + … has not forgotten yet.
    lags = np.arange(1, steps)
    ends = {"BAOAB": (1 + c) / 2, "ABOBA": (1 + c) / 2, "OBABO": 1.0, "GLA(Verlet)": 1.0}[str(splitting)]
    exact = h**2 * (steps * ends + 2 * np.sum((steps - lags) * c**lags) * ((1 + c) ** 2 / (4 * c) if ends < 1 else 1.0))
    assert abs(square.mean() - exact) < 4 * square.std() / np.sqrt(many)
    assert exact / (2 * h * steps) == pytest.approx(factor, rel=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheme.check_step(0.5)
