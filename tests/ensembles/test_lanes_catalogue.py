"""A step by lanes is the step under vmap, to a few units in the last place: over the whole catalogue of spaces and schemes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles.block import step_of
from bismut.ensembles.lanes import Batch
from bismut.flows import flow, remember
from tests import systems
from tests.flows import catalogue

COUNT, H = 4, 0.05

BATHS = {
    "pendulum on a circle": lambda: bm.Langevin(bm.mechanical(bm.Circle(), potential=lambda q: 1 - jnp.cos(q)), temperature=0.7, friction=0.5),
    "rigid body": lambda: bm.Langevin(systems.heavy_top(), temperature=0.7, friction=0.5),
    "explicit": lambda: bm.EulerMaruyama(systems.separable()),
}


def agree(scheme: bm.Action) -> None:
    system, step = scheme.system, step_of(scheme)
    states = [systems.random_state(system, seed) for seed in range(COUNT)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    dW = jnp.asarray(H**0.5 * np.random.default_rng(2).standard_normal((COUNT, scheme.channels)))
    h, t = jnp.asarray(H), jnp.asarray(0.3)
    found = jax.vmap(lambda state: remember(flow(scheme), state, t))(batch)
    like = (states[0], jax.tree.map(lambda leaf: leaf[0], found), dW[0])
    lanes = Batch(COUNT, by_lanes=True)

    def by_lanes(*now):
        out = lanes.call(step, lanes.pack(now), like, h, t)
        return lanes.unpack(out, like[:2])

    got = catalogue.once(by_lanes)(batch, found, dW)
    want = catalogue.once(jax.vmap(lambda *now: step(now, h, t)))(batch, found, dW)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert np.isfinite(np.asarray(b)).all()
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@catalogue.everywhere
def test_actions(space, name):
    agree(catalogue.scheme(space, name))


@pytest.mark.parametrize("name", BATHS)
def test_baths_and_others(name):
    agree(BATHS[name]())
