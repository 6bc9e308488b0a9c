"""How a run is cut: into blocks by its work alone, and into chunks that no result knows of."""

import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.ensembles import request
from bismut.ensembles.block import PAUSE, BlockHooks, Pace, pace_of, run_block
from bismut.ensembles.block_codec import block_arrays
from bismut.store.zarr_writer import pack
from tests.ensembles.test_run import scheme, start


def asked(steps, trajectories, **more):
    return request(scheme(), start(), step=0.1, steps=steps, trajectories=trajectories, **more)


@pytest.mark.parametrize("trajectories", [1, 17, 1_000, 10_000, 300_000, 10**7])
def test_blocks_are_cut_by_the_work(trajectories, monkeypatch):
    """A short run has the fewest blocks that memory allows, a long one 32 if vectors can be filled, and cores do not matter."""
    short, long = asked(1, trajectories), asked(10**7, trajectories)
    most = short.engine_plan.most
    assert short.blocks == -(-trajectories // most) or trajectories * short.engine_plan.operations > 2**26
    assert long.blocks == max(-(-trajectories // 16) if trajectories < 512 else -(-trajectories // long.size), -(-trajectories // most))
    assert trajectories < 512 or 32 >= long.blocks > 28 or long.size == most
    for one in (short, long):
        assert one.size <= most
        assert one.size % 16 == 0 or one.blocks == 1
        assert sum(len(one.numbers(block)) for block in range(one.blocks)) == trajectories
    monkeypatch.setattr("bismut.executors.threads.cores", lambda: 64)
    assert [asked(1, trajectories).size, asked(10**7, trajectories).size] == [short.size, long.size]


def test_where_the_work_is_not_known_few_blocks_are_four():
    assert asked(10**6, 100, mode="xla").blocks == 1
    assert asked(10, 5_000, mode="xla").blocks == 4


@pytest.mark.parametrize("trajectories", [20_000, 41_000, 140_000])
def test_few_blocks_are_shared_evenly_by_two_and_by_four(trajectories):
    assert asked(100, trajectories).blocks % 4 == 0


def test_a_pace_is_kept_and_is_one_of_work():
    """So many steps as take a third of a second, of ten times the trajectories a tenth; at first few, and never many times more than were seen."""
    pace = Pace()
    assert pace.steps(1000) == 16
    pace.learn(16, 1000, PAUSE / 4)
    assert pace.steps(1000) == 64
    assert pace.steps(4000) == 16
    assert pace.steps(100) == 640
    pace.learn(16, 1000, 1e-9)
    assert pace.steps(1000) == 16 * 64


def test_a_run_begins_at_the_pace_of_the_last(monkeypatch):
    """Chunks of its first steps are those that the last ended with; a run that looks more often has a pace of its own."""
    chunks = []
    real = Pace.learn
    monkeypatch.setattr(Pace, "learn", lambda self, steps, n, seconds: (chunks.append(steps), real(self, steps, n, PAUSE / 1000))[0])
    own = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.cosh(q[0])))
    go = lambda **more: bm.simulate(own, own.start(jnp.ones(1), velocity=jnp.zeros(1)), step=0.1, steps=200, every=50, trajectories=4, **more)
    first = go()
    assert len(chunks) > 1
    chunks.clear()
    assert go().energy.mean.equals(first.energy.mean)
    assert chunks == [200]
    again = lambda **more: request(own, first.request.starts[0], **({"step": 0.2, "steps": 900, "every": 50, "trajectories": 4} | more))
    assert pace_of(again()) is pace_of(first.request)
    assert pace_of(again(every=25)) is not pace_of(first.request)
    assert pace_of(again(mode="xla")) is not pace_of(first.request)


@pytest.mark.parametrize(("mode", "places"), [("native", 16), ("xla", 2048)])
def test_a_block_of_one_has_no_longer_chunks_than_its_vector_is_wide(mode, places):
    """It takes as long as a whole vector: what is filled up is computed, too."""
    one = asked(10**6, 2049, mode=mode, block=2048)
    assert [one.program.places(len(one.numbers(block))) for block in range(2)] == [2048, places]


def test_a_block_is_the_same_to_the_byte_however_it_is_cut(monkeypatch):
    """Trajectories that fail in one chunk or in several: what is kept of a block that is computed again has the checksum it had."""
    blown = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: -0.25 * (q @ q) ** 2, noise=lambda q: 2.0 * q))
    one = request(blown, blown.start(jnp.ones(1), velocity=jnp.zeros(1)), step=0.1, steps=60, trajectories=20, seed=3, every=3)
    kept, order = set(), set()
    for steps in (1, 7, 1000):
        monkeypatch.setattr(Pace, "steps", lambda self, places, steps=steps: steps)
        control = BlockHooks()
        control.ends = True
        result = run_block(one, 0, 0, control)
        assert result is not None
        assert len({failure.step for failure in result.failures}) > 2
        kept.add(pack(block_arrays(one, result)))
        order.add(tuple(failure.trajectory for failure in result.failures))
    assert len(kept) == len(order) == 1
