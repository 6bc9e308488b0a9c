"""Memory is bounded and known before: programs are forgotten, equal functions share one, recorded rows are planned for."""

import jax
import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.compile_cache import LRUCache, compiled
from bismut.ensembles import ordered_merge, request, task
from bismut.ensembles.plan import plan
from bismut.errors import DomainError
from tests.ensembles.test_run import scheme, start


def fresh() -> tuple[bm.Action, bm.State]:
    """A scheme whose functions are new objects every time."""
    one = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.sum(q**4), noise=lambda q: 0.3 * jnp.sin(q)))
    return one, one.start(jnp.ones(1), velocity=jnp.zeros(1))


def test_equal_functions_compile_nothing_again():
    """Counted in programs of ours and in compilations of XLA."""
    events: list[str] = []
    own = lambda: bm.Observer(lambda s: 0.0, lambda m, s: m + 1.0)
    observe = lambda: {"x": lambda s: s.q[0] ** 2, "h": bm.histogram(lambda s: s.q[0], range=(-1, 1)), "o": own()}
    go = lambda: bm.simulate(*fresh(), step=0.1, steps=4, trajectories=3, observe=observe())
    go()
    go()
    before = task.compilations()
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
    for _ in range(3):
        go()
    assert task.compilations() == before
    assert not [name for name in events if "backend_compile" in name]
    other, begin = fresh()
    bm.simulate(other, begin, step=0.1, steps=4, trajectories=3, observe={"x": lambda s: s.q[0] ** 3})
    assert task.compilations() == before + 1


def test_what_is_remembered_is_bounded():
    memory = LRUCache(3)
    for i in range(10):
        assert memory.get(i, lambda i=i: i * i) == i * i
    assert (len(memory), memory.misses) == (3, 10)
    memory.get(9, lambda: 0)
    assert memory.misses == 10


def test_a_compiled_function_is_told_by_what_it_does():
    traced = []

    @compiled
    def apply(function, x):
        traced.append(1)
        return function(x)

    for n in (2.0, 2.0, 3.0):
        assert float(apply(lambda x, n=n: n * x, jnp.asarray(1.5))) == n * 1.5
    assert len(traced) == 2


def test_recorded_rows_are_planned_for():
    """A record of one number is five of them a look; values and paths are kept whole."""
    ask = lambda **other: plan(request(scheme(), start(), step=0.1, steps=400_000, trajectories=64, every=1, **other))
    assert ask(observe={"x": lambda s: s.q[0]}).memory > 2 * 400_000 * 5 * 8
    assert ask(observe={"x": bm.values(lambda s: s.q[0])}).memory > 2 * 400_000 * 64 * 8
    assert ask(observe={"x": bm.paths([0, 1])}).disk > 400_000 * 2 * 2 * 8
    assert ask(observe={"x": bm.extremes(lambda s: s.q[0])}).memory < 10**7
    with pytest.raises(DomainError, match="longer stride"):
        bm.simulate(scheme(), start(), step=0.1, steps=10**8, trajectories=10**4, every=1, observe={"x": bm.values(lambda s: s.q[0])}, dry_run=True)


def test_the_plan_says_which_engine_and_why():
    made = plan(request(scheme(), start(), step=0.1, steps=10, trajectories=4, mode="xla"))
    assert (made.engine, made.why) == ("xla", "asked for")
    assert "engine       xla: asked for" in repr(made)


def test_many_blocks_make_no_list():
    """2⁴⁰ trajectories are 2²⁹ blocks; the first few are asked for and no others."""
    asked = request(scheme(), start(), step=0.1, steps=1, trajectories=2**40, keep_final=False, block=2048)
    jobs = ordered_merge.OrderedMerge(asked, range(asked.blocks), None, lambda result: None).jobs()
    assert [next(jobs) for _ in range(3)] == [(0, 0, None), (0, 1, None), (0, 2, None)]
    assert asked.numbers(2**29 - 1)[-1] == 2**40 - 1
