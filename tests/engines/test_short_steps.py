"""Short steps are written out, loops over bodies too, and long ones are loops; few trajectories get narrow code. Numbers do not depend on either."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from llvmlite import ir

import bismut as bm
from bismut.body_loops import Bonds, Pair, pairs
from bismut.engines import choice
from bismut.engines.engine import Watch
from bismut.engines.native import engine, loops
from bismut.engines.native.engine import Native
from bismut.engines.native.tracing import trace
from bismut.ensembles import task as tasks
from bismut.ensembles.task import build_task, increments_of
from bismut.gallery import entry
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


def task_for(system, observe=(), dtype=np.float64):
    """Verlet steps of a system on ℝⁿ, with observables."""
    scheme, path = bm.Verlet(system), Wiener(1)
    vector = jax.ShapeDtypeStruct((system.space.dim,), dtype)
    watches = tuple(Watch(lambda state, t, numbers: (), lambda memory, state, t, numbers, of=of: ((), of(state))) for of in observe)
    return build_task((scheme, path), bm.State(vector, vector), dtype, **increments_of(path, dtype))._replace(watches=watches)


def meeting(n: int):
    """Potentials in which every unknown meets every other, in a product with a matrix, in an array, and through log det of n × n matrices."""
    random = np.random.default_rng(0)
    A, S = random.normal(size=(n, n)) / n, random.normal(size=(2, n, n)) / (4 * n)
    S = S + np.swapaxes(S, 1, 2)
    root = lambda q: jnp.linalg.cholesky(2 * jnp.eye(n) + jnp.tensordot(jnp.tanh(q), S, 1))
    return {
        "dense": (n, lambda q: 0.5 * q @ q + 0.25 * jnp.sum((A @ q) ** 4)),
        "array": (n, lambda q: jnp.sum(jnp.exp(-((q[:, None] - q[None]) ** 2))) + q @ q),
        "matrix": (2, lambda q: jnp.sum(jnp.log(jnp.diagonal(root(q)))) + 0.5 * q @ q),
    }


def system_of(name: str, n: int):
    dim, potential = meeting(n)[name]
    return bm.mechanical(bm.Euclidean(dim), potential=potential)


@pytest.mark.parametrize(
    ("name", "n", "out"), [("dense", 10, True), ("dense", 30, False), ("array", 6, True), ("array", 20, False), ("matrix", 16, True)]
)
def test_a_few_operations_on_large_arrays_are_loops(name, n, out):
    """Except around a factorisation, which is written out in any case."""
    assert loops.short_enough(trace(task_for(system_of(name, n)))) is out
    longest = {True: 1_500_000 + 4_000_000 * (name == "matrix"), False: 500_000}
    assert len(Native()._write(task_for(system_of(name, n))).text) < longest[out]


@pytest.mark.parametrize(("name", "out"), [("heavy-top-reduced", True), ("sine-euler", False)])
def test_matrices_of_eight_rows_are_loops_and_bodies_are_written_out(name, out):
    """Written out, sine-euler is 362 kB of WebAssembly instead of 133, and a quarter slower."""
    found, path = entry(name), Wiener(1)
    scheme = found.scheme(found.build())
    start: Any = found.start(scheme)
    state = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, np.float64), bm.State(start.q, start.p))
    assert loops.short_enough(trace(build_task((scheme, path), state, np.float64, **increments_of(path, np.float64)))) is out


@pytest.mark.parametrize("name", ["dense", "array"])
def test_the_number_of_trajectories_decides_neither_engine_nor_bits(name):
    scheme = bm.Verlet(system_of(name, 28))
    start = scheme.start(0.3 * np.random.default_rng(1).normal(size=28), velocity=np.zeros(28))
    few, many = (bm.simulate(scheme, start, step=0.01, steps=20, trajectories=n, seed=1, observe={}) for n in (3, 64))
    assert few.provenance.mode == many.provenance.mode == "native"
    np.testing.assert_array_equal(np.asarray(few.final.q), np.asarray(many.final.q)[:3])


def test_how_long_code_is_does_not_depend_on_the_number_of_trajectories(monkeypatch):
    """Constants are as long as vectors are wide; what is judged is the code for many trajectories."""
    task = task_for(system_of("dense", 10))
    narrow, wide = (len(Native(width)._write(task).text) for width in (engine.FEW, None))
    assert 1.5 * narrow < wide
    for limit, chosen in ((wide, "native"), (wide - 1, "xla"), ((narrow + wide) // 2, "xla"), (narrow - 1, "xla")):
        monkeypatch.setattr(engine, "LONG_CODE", limit)
        assert [choice.choose("auto", task, few=few).engine.name for few in (True, False)] == [chosen, chosen]
    monkeypatch.setattr(loops, "LONGEST", 100)  # beyond it a step is loops, whoever asks
    assert Native(engine.FEW)._write(task).text.count("phi") == Native()._write(task).text.count("phi") > 0


def test_watches_that_are_long_together_leave_the_steps_where_they_are(monkeypatch):
    system = system_of("dense", 10)
    many = [lambda state, k=k: jnp.sin(state.q + k) @ jnp.cos(state.p * k) for k in range(4)]
    alone, task = (Native()._write(task_for(system, observe)) for observe in ((), many))
    monkeypatch.setattr(engine, "LONG_CODE", (len(alone.text) + len(task.text)) // 2)
    chosen = choice.choose("auto", task_for(system, many))
    assert chosen.engine.name == "native"
    assert [i for i, _ in chosen.observers] == [0, 1, 2, 3]
    monkeypatch.setattr(engine, "LONG_CODE", len(alone.text) // 2)
    assert choice.choose("auto", task_for(system, many)).engine.name == "xla"
