"""Many bodies within a reach of each other: near ones come from lists, and nothing that a list could change is changed.

U = Σ_{i<j} S(r) (a_i r⁻⁴ + 0.3 b_j r⁻²),   f = −∂U     against the sum over all pairs, written by hand
bits depend neither on when a list was made, nor on its skin, nor on the room that it had, nor on the number of threads
"""

import subprocess
import sys
from contextlib import contextmanager
from copy import copy
from functools import cache, cached_property

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.engines.engine import Course, Schedule, Task
from bismut.engines.native import engine as native_engine
from bismut.engines.native import list_memory, thread_team
from bismut.engines.native.engine import Native
from bismut.errors import BismutError
from bismut.programs.codegen import neighbours
from tests.memory import PEAK_KILOBYTES

H = 0.05


def _places(count, sides, seed=5):
    """A lattice, shaken, of which some are left out, and velocities."""
    generator, axes = np.random.default_rng(seed), len(sides)
    per = int(np.ceil(count ** (1 / axes)))
    chosen = np.sort(generator.permutation(per**axes)[:count])
    x = np.stack(np.unravel_index(generator.permutation(chosen), (per,) * axes), -1) * np.divide(sides, per)
    return x + generator.uniform(-0.1, 0.1, x.shape) * np.divide(sides, per), generator.normal(size=x.shape)


class Moving:
    """Bodies that fly straight on, x ← x + h v, with energy and force where they are, as a task of the engine. They begin within some part of the
    box, each in another of its images."""

    def __init__(self, count, sides, cutoff, open_axes=(), within=None, speed=1.0, dtype=np.float64):
        self.lengths = np.array([np.inf if k in open_axes else side for k, side in enumerate(sides)])
        self.cutoff, self.weights = cutoff, np.random.default_rng(1).uniform(0.5, 1.5, count)
        x, v = _places(count, within or sides)
        images = np.random.default_rng(2).integers(-2, 3, x.shape) * np.where(np.isfinite(self.lengths), sides, 0.0)
        self.x, self.v = (x + images).astype(dtype), (speed * v).astype(dtype)
        box = bm.Box(self.lengths) if np.isfinite(self.lengths).any() else None
        potential = bm.pair_potential(self.energy, self.weights, cutoff=cutoff, box=box)

        def step(state, dW, h, t, numbers):
            x, v, _, _ = state
            energy, slope = jax.value_and_grad(potential)(x + h * v)
            return x + h * v, v, -slope, energy

        begin = lambda state, t, numbers: step(state, None, jnp.zeros((), dtype), t, numbers)
        draw = lambda trajectory, k, h, numbers: jnp.zeros((1, 0), dtype)
        example = jax.eval_shape(lambda: (self.x, self.v, self.x, self.x[0, 0]))
        self.task = Task(begin, step, lambda carry: carry, draw, 1, (), example, (), np.dtype(dtype))

    @staticmethod
    def energy(a, b):
        r2 = (a.x - b.x) @ (a.x - b.x)
        return a.data * r2**-2 + 0.3 * b.data / r2

    def compile(self):
        lowered = Native().lower(self.task)
        assert "cell list" in lowered.why
        return lowered.compile()

    @cached_property
    def program(self):
        return self.compile()

    def run(self, *cuts, program=None, threads=1):
        """The state after so many steps, each number a call of its own."""
        return [leaf[0] for leaf in self.run_many([self.x], *cuts, program=program, threads=threads)]

    def run_many(self, places, *cuts, program=None, threads=1):
        x, program = np.stack(places), program or self.program
        starts = x, np.broadcast_to(self.v, x.shape), np.zeros_like(x), np.zeros(len(x), x.dtype)
        batch = program.begin(Course(H, 0.0), (), np.arange(len(x), dtype=np.uint64), starts)
        for steps in cuts:
            batch, _ = program.advance(Course(H, 0.0), (), batch, Schedule(1, steps, threads=threads))
        return program.states(batch)

    def by_hand(self, x):
        """Energy and forces of all pairs."""
        x = np.asarray(x, float)
        r = x[None, :] - x[:, None]
        closed = np.isfinite(self.lengths)
        r[..., closed] -= self.lengths[closed] * np.round(r[..., closed] / self.lengths[closed])
        i, j = np.triu_indices(len(x), 1)
        r = r[i, j]
        r2 = np.sum(r**2, 1)
        b2, c2 = (0.8 * self.cutoff) ** 2, self.cutoff**2
        s = np.clip((r2 - b2) / (c2 - b2), 0, 1)
        switch, bend = 1 - s**3 * (10 - 15 * s + 6 * s * s), -30 * s * s * (1 - s) ** 2 / (c2 - b2)
        a, b = self.weights[i], 0.3 * self.weights[j]
        value, slope = a * r2**-2 + b / r2, -2 * a * r2**-3 - b * r2**-2
        pull = 2 * ((switch * slope + bend * value)[:, None] * r)  # dU/dr
        force = np.zeros_like(x)
        np.add.at(force, i, pull)
        np.add.at(force, j, -pull)
        return np.sum(switch * value), force


MAKERS = {
    # 301 is no multiple of a width
    "box": lambda: Moving(301, (9.0, 11.0, 10.0), 1.5),
    "just under half a side": lambda: Moving(260, (7.0, 7.5, 8.0), 3.49),
    "one cell, two cells, many": lambda: Moving(257, (3.1, 7.0, 16.0), 1.5),
    "all near all, in one cell": lambda: Moving(256, (60.0, 60.0, 60.0), 8.0, within=(4.0, 4.0, 4.0)),
    "plane": lambda: Moving(280, (20.0, 18.0), 1.5),
    "line": lambda: Moving(270, (300.0,), 2.0, speed=0.1),
    "open": lambda: Moving(270, (9.0, 9.0, 9.0), 1.5, (0, 1, 2)),
    "open along one axis": lambda: Moving(270, (9.0, 9.0, 9.0), 1.5, (1,)),
}


@cache
def moving(name):
    """Compiled once for all tests; LLVM needs a second for it."""
    return MAKERS[name]()


@pytest.mark.parametrize("name", MAKERS)
def test_lists_find_all_that_is_near(name):
    """Also after steps on which lists were kept, and after others on which they were made anew: bodies go 2 in 40 steps."""
    case = moving(name)
    for steps in (0, 3, 40):
        x, _, force, energy = case.run(steps)
        value, pull = case.by_hand(x)
        np.testing.assert_allclose(energy, value, rtol=1e-11)
        np.testing.assert_allclose(force, pull, rtol=1e-10, atol=1e-10)
        assert (np.abs(force) > 1e-3).mean() > 0.01
    np.testing.assert_allclose(x, case.x + 40 * H * case.v, rtol=1e-12, atol=1e-12)


def _bits(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_bits_know_nothing_of_lists(monkeypatch):
    """However a run is cut, what else runs beside it, how many threads share it, and whatever the skin is or the room that lists have at first."""
    case = moving("box")
    whole = case.run(40)
    assert _bits(case.run(13, 1, 26), whole)
    beside = case.run_many([case.x[::-1], case.x, 1.01 * case.x], 20, 20)
    assert _bits([leaf[1] for leaf in beside], whole)
    assert not _bits([leaf[0] for leaf in beside], whole)
    for threads in (2, 3, 7):
        assert _bits(case.run(40, threads=threads), whole)
    monkeypatch.setattr(neighbours, "SKIN", 0.6)
    monkeypatch.setattr(list_memory, "_FIRST", 1)
    assert _bits(case.run(40, program=case.compile()), whole)


def test_a_full_list_gets_more_room(monkeypatch):
    """All pairs of 256 bodies are four times as many as there is room for at first: the call is made again until they fit."""
    case, calls = moving("all near all, in one cell"), []
    settle = list_memory.ListMemory.settle
    monkeypatch.setattr(list_memory.ListMemory, "settle", lambda self, shelf: calls.append(settle(self, shelf)) or calls[-1])
    monkeypatch.setattr(
        case.program,
        "_list_memories",
        {name: [list_memory.ListMemory(room._facts) for room in rooms] for name, rooms in case.program._list_memories.items()},
    )
    energy = case.run(5)[3]
    assert calls.count(False) >= 2
    assert calls.count(True) == 2
    np.testing.assert_allclose(energy, case.by_hand(case.x + 5 * H * case.v)[0], rtol=1e-11)


def test_a_list_that_misses_a_pair_is_found_out(monkeypatch):
    """A run begins with a look at all pairs. Here lists reach less far than the cutoff."""
    monkeypatch.setattr(neighbours, "SKIN", -0.3)
    case = moving("box")
    with pytest.raises(BismutError, match="misses interacting pairs"):
        case.run(1, program=case.compile())


def test_who_is_nowhere_has_no_neighbours():
    """Places that are no numbers are neither in nor beside the cell of anybody; one far away is, in a box."""
    case, lost = copy(moving("open along one axis")), [3, 7, 11]
    case.x = case.x.copy()
    case.x[lost] = np.array([np.nan, np.inf, -np.inf])[:, None]
    case.x[50, 0] += 9.0 * 2**14
    rest = np.setdiff1d(np.arange(len(case.x)), lost)
    force = case.run(2)[2]
    case.weights = case.weights[rest]
    pull = case.by_hand((case.x + 2 * H * case.v)[rest])[1]
    np.testing.assert_allclose(force[rest], pull, rtol=1e-8, atol=1e-8)


def test_single_precision():
    case = Moving(301, (9.0, 11.0, 10.0), 1.5, dtype=np.float32)
    x, _, force, _ = case.run(20)
    assert force.dtype == np.float32
    np.testing.assert_allclose(force, case.by_hand(x)[1], rtol=2e-3, atol=2e-3)


def _dipoles(count=300):
    """A bath of dipoles in a box."""
    side = 1.2 * np.ceil(count ** (1 / 3))
    x, _ = _places(count, (side,) * 3)
    potential = bm.dipoles([0.0, 0.0, 1.0], cutoff=2.5) + bm.soft_spheres(strength=10.0, cutoff=2.5)
    inertia = np.tile([1.0, 1.5, 2.0], (count, 1))
    system = bm.rigid_bodies(mass=np.ones(count), inertia=inertia, potential=potential, box=bm.Box((side,) * 3))
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    return scheme, scheme.start((x, np.tile(np.eye(3), (count, 1, 1))), temperature=1.0)


@pytest.mark.long
def test_a_box_of_dipoles_goes_the_way_of_all_pairs():
    """Thirty steps of BAOAB by lists and by XLA over all pairs; and a run that is cut is the whole run to the bit."""
    scheme, start = _dipoles()
    settings = {"step": 0.005, "every": 15, "trajectories": 2, "seed": 3, "observe": {"energy": bm.energy}, "progress": False}
    native, xla = (bm.simulate(scheme, start, steps=30, mode=mode, **settings) for mode in ("auto", "xla"))
    assert native.provenance.mode == "native"
    assert "cell list (cutoff 2.5, skin 0.375)" in bm.explain(scheme)
    assert native.outcome.failures == xla.outcome.failures == ()
    np.testing.assert_allclose(native.energy.mean, xla.energy.mean, rtol=1e-10)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), native.final, xla.final)
    first = bm.simulate(scheme, start, steps=11, **settings)
    rest = bm.simulate(scheme, steps=19, continue_from=first, observe=settings["observe"], every=15, progress=False)
    assert _bits(jax.tree.leaves(rest.final), jax.tree.leaves(native.final))


def test_threads_share_the_bodies_of_one_trajectory(monkeypatch):
    """Helpers come, in a run that is long enough for that; nobody helps where one thread is asked for."""
    case, came = moving("box"), []
    original = thread_team.help_of

    @contextmanager
    def watched(*arguments):
        with original(*arguments) as numbers:
            yield numbers
            came.append(0 if arguments[0] == 0 else int(numbers[20]))

    monkeypatch.setattr(native_engine, "help_of", watched)
    case.run(2000, threads=2)
    case.run(20)
    assert came == [0, 1, 0, 0]  # of the beginning, and of the steps


@pytest.mark.slow
def test_a_million_points_fit_into_two_gigabytes():
    """With lists of neighbours, and they step: the largest memory of a process of its own."""
    run = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=True)
    steps, kilobytes = map(int, run.stdout.split())
    assert steps == 16
    assert kilobytes < 2 * 2**20


MILLION = """
import jax
jax.config.update("jax_enable_x64", True)
import bismut as bm, numpy as np
side = 100
x = 1.05 * np.stack(np.unravel_index(np.arange(side**3), (side,) * 3), -1)
system = bm.mechanical(bm.Euclidean(3) ** side**3, mass=1.0, potential=bm.lennard_jones(cutoff=2.5), box=bm.Box([1.05 * side] * 3))
scheme = bm.Langevin(system, temperature=1.0, friction=0.1)
start = scheme.start(x, temperature=1.0)
result = bm.simulate(scheme, start, step=0.002, steps=16, trajectories=1, seed=1, observe={}, mode="native", progress=False)
print(result.steps_done, PEAK)
""".replace("PEAK", PEAK_KILOBYTES)
