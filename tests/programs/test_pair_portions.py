"""Many pairs in NumPy: near ones alone where there is a cutoff, a portion at a time elsewhere, and sums of all pairs in either case."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.body_loops import Bonds, Pair, pairs
from bismut.programs.evaluation import evaluate
from bismut.programs.layout import Reach
from bismut.programs.operations import pair_portions
from tests.memory import PEAK_KILOBYTES

COUNT, SIDE = 500, 11.0
PLACES = np.random.default_rng(2).uniform(-2.0 * SIDE, 3.0 * SIDE, (COUNT, 3))  # far from the box, too
INDICES = np.random.default_rng(3).integers(0, 60, (2, 40_000))
CHOSEN = Bonds(INDICES[0], INDICES[0] + 1 + INDICES[1])


def compared(monkeypatch, function, *arguments):
    """function(*arguments) in portions, and with all pairs at once."""
    asked = []
    original = pair_portions.evaluate
    monkeypatch.setattr("bismut.programs.operations.body_loops.evaluate_in_portions", lambda *given: asked.append(1) or original(*given))
    found = evaluate(function, *arguments)
    assert asked
    monkeypatch.setattr(pair_portions, "ALL_AT_ONCE", 10**9)
    expected = evaluate(function, *arguments)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max())
        assert a.dtype == b.dtype
        assert np.abs(b).max() > 0


@pytest.mark.parametrize("sides", [(SIDE,) * 3, (SIDE, np.inf, 2 * SIDE), ()], ids=["box", "slab", "open"])
def test_near_pairs_are_all_that_contribute(sides, monkeypatch):
    """Values, forces and second derivatives along a direction."""
    u = bm.soft_spheres(cutoff=(1.5, 2.4)) + bm.yukawa(cutoff=2.5)
    system = bm.mechanical(bm.Euclidean(3) ** COUNT, potential=u.inside(sides) if sides else u)
    direction = np.random.default_rng(4).normal(size=(COUNT, 3))
    monkeypatch.setattr(pair_portions, "_pairs", lambda *_: pytest.fail("all pairs were asked for"))
    force = jax.grad(system.potential)
    with monkeypatch.context() as patch:
        compared(patch, lambda x: (system.potential(x), force(x), jax.jvp(force, (x,), (direction,))[1]), PLACES / (1.0 if sides else 4.0))


def test_pairs_without_a_cutoff_are_taken_in_portions(monkeypatch):
    """Totals, sums for each body, and results of the pairs themselves, which have numbers of their own; an even number of bodies and an odd one."""
    for count in (301, 300):
        strengths = np.random.default_rng(5).normal(size=count * (count - 1) // 2)

        def meeting(a, b, k):
            away = jnp.sin(a - 2 * b) * k
            return Pair(total=k * jnp.sum(a * b**2), first=away, second=jnp.cos(away), own=a[0] - k * b[1])

        with monkeypatch.context() as patch:
            compared(patch, lambda x, k, meeting=meeting: pairs(meeting, x, k), PLACES[:count], strengths)


@pytest.mark.parametrize("kind", [float, np.float32])
def test_so_are_bonds_and_numbers_of_any_kind(kind, monkeypatch):
    def bond(a, b, k):
        return Pair(total=k * jnp.sum(jnp.abs(a - b)), second=(a > b).astype(jnp.int32), first=(a < b).astype(jnp.int32))

    with monkeypatch.context() as patch:
        patch.setattr(pair_portions, "PORTION", 2**13 if kind is float else 2**16)
        places, strengths = np.round(PLACES).astype(kind), np.round(10 * np.random.default_rng(6).normal(size=40_000)).astype(kind)
        pair_portions._portion_program.cache_clear()
        compared(patch, lambda x, k: pairs(bond, x, k, bonds=CHOSEN), places, strengths)
    pair_portions._portion_program.cache_clear()


def test_a_place_that_is_no_number_is_met_by_all(monkeypatch):
    """No tree holds it; the sum is NaN, or what it is with all pairs at once."""
    box = bm.soft_spheres(cutoff=2.5).inside((SIDE,) * 3)
    system = bm.mechanical(bm.Euclidean(3) ** COUNT, potential=box)
    places = PLACES.copy()
    places[7, 1] = np.nan
    found = float(system.energy(bm.State(places, np.zeros_like(places))))
    monkeypatch.setattr(pair_portions, "ALL_AT_ONCE", 10**9)
    np.testing.assert_equal(found, float(system.energy(bm.State(places, np.zeros_like(places)))))


def test_near_pairs_are_those_within_the_reach(monkeypatch):
    x, reach = PLACES, Reach(0, 2.5, (SIDE, SIDE, np.inf))
    near = pair_portions.near_pairs(x, reach)
    assert near is not None
    r = x[:, None] - x
    r[..., :2] -= SIDE * np.round(r[..., :2] / SIDE)
    i, j = np.nonzero(np.triu(np.sum(r**2, -1) <= 2.5**2, 1))
    np.testing.assert_array_equal(np.array([near.i, near.j]), [i, j])
    monkeypatch.setattr(pair_portions, "MOST_NEAR", 10)
    assert pair_portions.near_pairs(x, reach) is None


LARGE = """
import jax; jax.config.update("jax_enable_x64", True)
import bismut as bm, numpy as np
for n in (16, 32):
    x = 1.06 * np.stack(np.unravel_index(np.arange(n**3), (n,) * 3), -1)
    box = bm.mechanical(bm.Euclidean(3) ** n**3, potential=bm.lennard_jones(cutoff=(2.0, 2.5)), box=bm.Box((1.06 * n,) * 3))
    print(repr(float(box.energy(bm.State(x, np.ones_like(x))))))
print(PEAK)
""".replace("PEAK", PEAK_KILOBYTES)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_energy_of_a_large_box_takes_little_memory():
    """Of 32 768 points, whose pairs would be 4 GB for each number; a lattice of eight times the points has eight times the energy."""
    small, large, kilobytes = map(float, subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True).stdout.split())
    assert kilobytes < 1_000_000
    assert small < 0
    assert large == pytest.approx(8 * small, rel=1e-12)
