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


def test_a_run_that_goes_on_is_cut_into_the_same_blocks():
    """So its statistics, too, are those of the whole run to the bit, though a run of its length would have other blocks."""
    scheme = bm.VariationalEuler(systems.separable())
    start, observe = systems.random_state(scheme.system), {"x": lambda s: s.q}
    run = lambda steps, **more: bm.simulate(scheme, start, step=1e-3, steps=steps, every=steps, trajectories=9000, seed=9, observe=observe, **more)
    half = run(3)
    rest = bm.simulate(scheme, continue_from=half, steps=4000, every=4000, observe=observe)
    assert rest.request.size == half.request.size != bm.simulate(scheme, start, step=1e-3, steps=4000, trajectories=9000).request.size
    whole = run(4003, block=half.request.size)
    assert np.array_equal(rest.x.mean[-1], whole.x.mean[-1])
    assert np.array_equal(rest.x.stderr[-1], whole.x.stderr[-1])


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
