"""φ_{t,s}(θ_s ω) ∘ φ_{s,r}(ω) = φ_{t,r}(ω), bit for bit: a run may be cut anywhere."""

import jax
import numpy as np
import pytest

import bismut as bm
from tests import systems

H = 0.02


@pytest.mark.parametrize(("name", "cuts"), [("plane", (5,)), pytest.param("heavy_top", (1, 6), marks=pytest.mark.slow)])
def test_cut_run_equals_whole_run(name, cuts):
    scheme = bm.VariationalEuler(systems.ALL[name]())
    start, path = systems.random_state(scheme.system), bm.Wiener(5)
    whole = bm.trajectory(scheme, start, step=H, steps=12, path=path).final
    for cut in cuts:  # within a block of four increments and between blocks
        first = bm.trajectory(scheme, start, step=H, steps=cut, path=path).final
        rest = bm.trajectory(scheme, first, step=H, steps=12 - cut, path=path.shift(cut), t0=cut * H).final
        assert jax.tree.all(jax.tree.map(np.array_equal, rest, whole))


def bath(system: bm.System) -> bm.Langevin:
    """A step of it begins with the force that ended the step before: where a run begins, that force is computed anew."""
    return bm.Langevin(system.without_noise(), temperature=0.7, friction=0.5)


@pytest.mark.parametrize("make", [bm.VariationalEuler, bath])
def test_cut_ensemble_equals_whole_ensemble(make):
    scheme = make(systems.separable())
    start, path = systems.random_state(scheme.system), bm.Wiener(9)
    common = {"step": H, "trajectories": 5}
    whole = bm.simulate(scheme, start, steps=10, path=path, **common).final
    half = bm.simulate(scheme, start, steps=3, path=path, **common).final
    rest = bm.simulate(scheme, half, steps=7, path=path.shift(3), t0=3 * H, **common).final
    assert jax.tree.all(jax.tree.map(np.array_equal, rest, whole))
