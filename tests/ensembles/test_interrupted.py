"""What is left of an interrupted run is consistent: times and means have one length, and the words say what there is."""

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.ensembles import block, block_job, run
from bismut.executors import Threads
from tests.ensembles.test_run import scheme, start

X = lambda state: state.q[0]
RUN = {"step": 0.05, "steps": 90, "seed": 2, "every": 20, "observe": {"x": X, "kept": bm.values(X), "mean": bm.time_average(X, every=3)}}


def interrupted(monkeypatch, after: int, **settings) -> bm.Result:
    """A run that is asked to stop when so many chunks of sixteen steps are done."""
    chunks = []
    monkeypatch.setattr(block.Pace, "steps", lambda self, trajectories: 16)
    monkeypatch.setattr(block.Pace, "learn", lambda self, steps, trajectories, seconds: chunks.append(steps))
    monkeypatch.setattr(run, "Threads", lambda: Threads(1))
    original = block.BlockHooks

    def listening(stopped, *others):
        return original(lambda: len(chunks) >= after, *others)

    monkeypatch.setattr(block_job, "BlockHooks", listening)
    monkeypatch.setattr(run.Stop, "asked", property(lambda self: len(chunks) >= after, lambda self, value: None), raising=False)
    return bm.simulate(scheme(), start(), **(RUN | settings))


def test_times_and_means_have_one_length(monkeypatch):
    """Stopped in its first block, between two looks, the run is the run of as many steps."""
    cut = interrupted(monkeypatch, 3, trajectories=10, block=10)
    monkeypatch.undo()
    steps = cut.steps_run
    assert 20 < steps < 90
    assert steps % 20
    assert len(cut.times) == len(cut.x.mean) == cut.kept.value.shape[1] == steps // 20 + 2
    shorter = bm.simulate(scheme(), start(), **(RUN | {"steps": steps, "trajectories": 10, "block": 10}))
    for name in ("x", "kept", "mean"):
        for kind, (_, values) in shorter[name].variables.items():
            np.testing.assert_array_equal(values, cut[name].variables[kind][1])
    assert jax.tree.all(jax.tree.map(np.array_equal, cut.final, shorter.final))
    assert "finished" not in str(cut.outcome)
    assert f"interrupted after {steps} of 90 steps, with 10 of 10 trajectories" in str(cut.outcome)
    assert f"{steps} of 90 steps" in repr(cut)


def test_an_interrupted_sweep_keeps_what_is_complete(monkeypatch):
    """Values that were not reached are not numbers; the old code failed on arrays of unequal length."""
    observe = {"x": X, "cross": bm.section(lambda s: s.q[0] - 0.4, at=X, capacity=2)}
    cut = interrupted(monkeypatch, 16, trajectories=8, block=4, observe=observe, sweep={"k": [0.5, 1.0, 2.0]})
    done = cut.provenance.trajectories_run
    assert done[0] == 8
    assert done[-1] == 0
    assert np.isfinite(cut.x.mean.values[0]).all()
    assert np.isnan(cut.x.mean.values[-1]).all()
    assert cut.cross.count.shape == (3, 8)
    assert f"{sum(done)} of 24 trajectories complete" in str(cut.outcome)
    assert jnp.isnan(cut.final.q[-1]).all()
