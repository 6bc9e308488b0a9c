"""Short steps are written out, loops over bodies too, and long ones are loops; few trajectories get narrow code. Numbers do not depend on either."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from llvmlite import ir

import bismut as bm
from bismut.body_loops import Bonds, Pair, pairs
from bismut.engines.native import loops
from bismut.engines.native.engine import Native
from bismut.ensembles import task as tasks
from bismut.ensembles.task import build_task, increments_of
from bismut.noise import Wiener
from bismut.programs.codegen import frame

START = np.array([[0.9, 0.1, 0.0], [-0.2, 0.8, 0.3], [0.1, -0.7, 1.1], [1.2, 1.0, -0.4]])
CHAIN = Bonds([0, 3, 1], [1, 2, 3])


def energy(x):
    """Every pair, and three bonds with strengths of their own; neither symmetric nor linear."""
    meeting = lambda a, b, _: Pair(total=jnp.exp(-jnp.sum((a - 2 * b) ** 2)) + a[0] * b[1])
    bond = lambda a, b, k: Pair(total=k * jnp.sum((a - b) ** 2) ** 2, own=jnp.sin(k * a[2]))
    bonded = pairs(bond, x, jnp.array([0.5, 0.7, 1.1]), bonds=CHAIN)
    return pairs(meeting, x).total + bonded.total + jnp.sum(bonded.own**2)


def written(short: bool, monkeypatch: pytest.MonkeyPatch):
    """Four bodies by Langevin dynamics, as code with loops over bodies or without."""
    with monkeypatch.context() as patch:
        patch.setattr(loops, "LARGEST", loops.LARGEST if short else 0)
        scheme = bm.Langevin(bm.mechanical(bm.Euclidean(3) ** 4, potential=energy), temperature=1.0, friction=0.5)
        path = Wiener(3)
        state = bm.State(jax.ShapeDtypeStruct((4, 3), np.float64), jax.ShapeDtypeStruct((4, 3), np.float64))
        task = build_task((scheme, path), state, np.float64, **increments_of(path, np.float64))
        return Native()._write(task)


def test_loops_over_few_bodies_are_written_out(monkeypatch):
    """A loop has a counter, and a step without loops over bodies has only those over groups, ticks and steps."""
    short, long = (written(mode, monkeypatch).text.count(" phi ") for mode in (True, False))
    assert short < long


def test_written_out_or_not_a_step_is_the_same(monkeypatch):
    """To round-off: what lies in memory is not fused."""
    system = bm.mechanical(bm.Euclidean(3) ** 4, potential=energy, noise=lambda x: 0.1 * x[:2, 0])
    ends = []
    for most in (loops.LONGEST, 0):
        monkeypatch.setattr(loops, "LONGEST", most)
        scheme = bm.Verlet(system)
        tasks._PLANS._values.clear()
        tasks._PROGRAMS._values.clear()
        run = {"step": 0.01, "steps": 20, "trajectories": 20, "seed": 2, "mode": "native"}
        ends.append(bm.simulate(scheme, scheme.start(START, velocity=0 * START), observe={"x": lambda s: s.q}, every=20, **run).x.mean.values)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12, atol=1e-13)
    assert np.abs(ends[0][-1] - ends[0][0]).max() > 1e-3


def test_few_trajectories_have_the_bits_of_many():
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(2), potential=lambda q: jnp.cos(q[0] * q[1])), temperature=1.0, friction=1.0)
    start = scheme.start(np.array([0.3, 0.4]), temperature=1.0)
    records = lambda n: bm.simulate(
        scheme, start, step=0.1, steps=50, trajectories=n, seed=5, observe={"q": bm.values(lambda s: s.q)}, every=10, mode="native"
    )
    few, many = (np.asarray(records(n).q.value) for n in (3, 20))
    assert many.shape[0] == 20
    np.testing.assert_array_equal(few, many[:3])


def test_a_long_step_is_noticed_while_it_is_written():
    one = frame.Frame(ir.Module(), "f", 4, True)
    with one.limited(3):
        for _ in range(3):
            one.count()
        with pytest.raises(frame.TooLong):
            one.count()
