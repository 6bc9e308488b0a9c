"""Periodic boxes and cutoffs: nearest images, forces that are derivatives, and nothing that happens where an energy ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError, ShapeError
from bismut.mechanics import inventory
from bismut.mechanics.bodies.box import Cutoff
from bismut.programs.evaluation import evaluate, evaluator
from tests.mechanics.bodies.configurations import nudged, scattered

COUNT = 6
SIDES = (3.4, 4.1, 3.7)
BOX = bm.Box(SIDES)
generator = np.random.default_rng(11)
MOMENTS, DATA = generator.normal(size=(COUNT, 3)), generator.uniform(0.5, 1.5, COUNT)
own = lambda a, b: a.data * jnp.exp(-0.2 * (b.x - a.x) @ (b.x - a.x)) * (1 + 0.3 * a.R[:, 0] @ b.R[:, 1])
TERMS = {
    "dipoles": bm.dipoles(MOMENTS, 0.7, cutoff=1.6),
    "spheres": bm.soft_spheres(0.8, cutoff=(1.0, 1.7)),
    "elongated": bm.gay_berne(1.4, 2.0, 0.5, cutoff=1.65),
    "own pair": bm.pair_potential(own, DATA, cutoff=1.5),
    "springs": bm.springs([[0, 3], [2, 5]], 0.7, [0.0, 1.0], [[0.1, 0.0, 0.0], [0.0, 0.2, 0.0]]),
}
TERMS["sum"] = 2.0 * TERMS["dipoles"] + TERMS["spheres"] + TERMS["springs"] + bm.harmonic_trap(0.0)
INSIDE = {name: term.inside(BOX) for name, term in TERMS.items()}


def spread():
    """Bodies all over the box and beyond, none too near to an image of another."""
    x, R = scattered(COUNT, 4)
    return x + SIDES * np.random.default_rng(3).integers(-2, 3, (COUNT, 3)), R


@pytest.mark.parametrize("name", INSIDE)
def test_a_body_may_be_any_of_its_images(name):
    """A shift of one body by a lattice vector changes neither energy nor force."""
    (x, R), there = spread(), spread()[0]
    there[2] += np.array([1, -2, 3]) * SIDES
    found = evaluator(jax.value_and_grad(INSIDE[name], (0, 1)))
    values = [found(y, R) for y in (x, there)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11), *values)
    assert abs(values[0][0]) > 1e-3


def test_of_all_images_one_is_met():
    """The sum over 27 images of every other body, without a box: a cutoff of half a side leaves one of them."""
    x, R = spread()
    images = np.stack(np.meshgrid(*[np.arange(-1, 2)] * 3), -1).reshape(-1, 3) * SIDES
    i, j = bm.pair_indices(COUNT)
    near = np.asarray(evaluate(BOX.nearest, x[j] - x[i]))
    places = x[i][:, None] + near[:, None] + images
    energy = jax.vmap(lambda a, b, A, B, data: bm.pair_potential(own, data, cutoff=1.5)(jnp.stack([a, b]), jnp.stack([A, B])))
    energy = jax.vmap(energy, (None, 1, None, None, None))
    total = np.sum(evaluate(energy, x[i], places, R[i], R[j], np.stack([DATA[i], DATA[j]], 1)))
    np.testing.assert_allclose(INSIDE["own pair"](jnp.asarray(x), jnp.asarray(R)), total, rtol=1e-11)


@pytest.mark.parametrize("name", INSIDE)
def test_forces_in_a_box_are_the_derivative(name):
    q, step = spread(), 1e-5
    space = (bm.Euclidean(3) * bm.SO3()) ** COUNT
    slopes = evaluate(jax.grad(lambda e: INSIDE[name](*space.nudge(tuple(map(jnp.asarray, q)), e))), space.zero())
    value = evaluator(INSIDE[name])
    for body, axis in ((0, 0), (2, 1), (5, 2)):
        for slope, there, back in zip(map(np.asarray, slopes), nudged(q, body, axis, step), nudged(q, body, axis, -step), strict=True):
            scale = max(1.0, np.abs(slope).max())
            assert abs(slope[body, axis] - (value(*there) - value(*back)) / (2 * step)) < 3e-8 * scale


def test_a_switch_has_two_continuous_derivatives():
    """1 up to the beginning, 0 from the end on, and at both S′ = S″ = 0: within δ of them S″ is of order δ, from either side."""
    switch = Cutoff(1.2, 1.7)
    S = lambda r: switch(jnp.square(r))
    jet = evaluator(lambda r: (S(r), jax.grad(S)(r), jax.grad(jax.grad(S))(r)))
    for place, value in ((1.2, 1.0), (1.7, 0.0)):
        for side in (-1e-7, 1e-7):
            here, first, second = jet(place + side)
            np.testing.assert_allclose([here, first], [value, 0], atol=1e-11)
            assert abs(second) < 1e-4
    np.testing.assert_allclose([jet(1.0)[0], jet(1.75)[0], jet(1.8)[1]], [1, 0, 0], atol=1e-15)
    assert 0 < jet(1.5)[0] < 1


def test_an_axis_without_a_side_is_open():
    r = np.array([[2.0, 2.0, 9.0], [-2.0, 0.4, -9.0]])
    np.testing.assert_allclose(evaluate(bm.Box((3.0, 3.0, np.inf)).nearest, r), [[-1.0, -1.0, 9.0], [1.0, 0.4, -9.0]], rtol=1e-15)


def gas(precision: str = "float64") -> bm.System:
    potential = bm.dipoles(0.4 * MOMENTS, cutoff=1.6) + bm.soft_spheres(0.8, cutoff=(1.0, 1.65))
    noise = bm.pair_noise(lambda a, b: 0.2 * b.R[2, 2] * jnp.exp(-b.x @ b.x), cutoff=1.5)
    bodies = {"mass": np.linspace(1.0, 2.0, COUNT), "inertia": np.tile([0.3, 0.4, 0.5], (COUNT, 1)), "precision": precision}
    return bm.rigid_bodies(potential=potential, noise=noise, box=BOX, symmetries={"momentum": bm.translations()}, **bodies)


def test_a_box_is_known_beside_own_forces():
    """What provenance and pictures are told of: the box of the pair terms, whether their derivatives are derived or given."""
    pairs = bm.soft_spheres(0.8, cutoff=1.65)
    forces = lambda x, R: (jnp.zeros_like(x), jnp.zeros_like(x))
    system = bm.rigid_bodies(
        mass=np.ones(COUNT), inertia=np.ones((COUNT, 3)), potential=pairs, box=BOX, forces=forces, check_forces=False, noise=None
    )
    found = inventory(system)
    assert found is not None
    assert found.box == BOX
    assert inventory(gas()).box == BOX


def test_total_momentum_is_kept_through_the_walls():
    system = gas()
    scheme = bm.VariationalEuler(system)
    start = scheme.start(spread(), velocity=(np.random.default_rng(1).normal(size=(COUNT, 3)), np.ones((COUNT, 3))))
    run = bm.trajectory(scheme, start, step=0.01, steps=300, seed=2, every=300)
    moved = np.abs(np.asarray(run.final.q[0] - start.q[0])).max()
    assert moved > min(SIDES)
    before, after = (np.asarray(system.momentum_map("momentum", state)) for state in (start, run.final))
    np.testing.assert_allclose(after, before, atol=2e-12)


def test_the_energy_error_of_verlet_is_of_second_order_across_cutoffs():
    """Points that fly through the fading of their energy and through walls, steps from 0.04 to 0.0025: slope 2. (Without fading: 0.7.)"""
    energy = bm.pair_potential(lambda a, b: 0.5 / (0.5 + (b.x - a.x) @ (b.x - a.x)), cutoff=(1.0, 1.6), box=BOX)
    system = bm.mechanical(bm.Euclidean(3) ** COUNT, potential=energy)
    scheme = bm.Verlet(system)
    start = scheme.start(spread()[0], velocity=np.random.default_rng(5).normal(size=(COUNT, 3)))

    def error(h):
        energies = evaluate(jax.vmap(system.energy), bm.trajectory(scheme, start, step=h, steps=round(4 / h)).states)
        return np.abs(np.asarray(energies) - np.asarray(energies)[0]).max()

    errors = [error(h) for h in (0.04, 0.0025)]
    crossings = np.linalg.norm(evaluate(BOX.nearest, np.asarray(start.q)[1:] - np.asarray(start.q)[:1]), axis=1)
    assert crossings.min() < 1.6 < crossings.max()
    np.testing.assert_allclose(np.log(errors[0] / errors[1]) / np.log(16), 2, atol=0.1)


def test_a_box_keeps_the_precision_of_the_bodies():
    x, R = (jnp.asarray(part, jnp.float32) for part in spread())
    for name, energy in INSIDE.items():
        assert all(leaf.dtype == jnp.float32 for leaf in jax.eval_shape(jax.value_and_grad(energy), x, R)), name


def test_a_loop_over_pairs_knows_how_far_it_reaches():
    """Also where it is differentiated: what an engine with lists of neighbours has to know."""
    x, R = map(jnp.asarray, spread())
    energy = INSIDE["dipoles"] + INSIDE["spheres"]
    closed = jax.make_jaxpr(jax.grad(energy, (0, 1)))(x, R)
    loops = [e.params["layout"].reach for e in closed.jaxpr.eqns if e.primitive.name == "pairs"]
    assert loops
    assert all(reach is not None and reach.cutoff == 1.7 and reach.box == SIDES for reach in loops)


@pytest.mark.parametrize("given", [4.0, np.float64(4.0), 4, (4.0, 4.0, 4.0), np.full(3, 4.0)])
def test_a_number_is_the_side_of_a_cube(given):
    system = bm.rigid_bodies(mass=[1.0], inertia=[[1, 1, 1]], potential=bm.soft_spheres(cutoff=1.0), box=given)
    assert inventory(system).box == bm.Box((4.0, 4.0, 4.0))


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        *(
            (lambda box=box: bm.rigid_bodies(mass=[1.0], inertia=[[1, 1, 1]], potential=bm.soft_spheres(cutoff=1.0), box=box), error, words)
            for box, error, words in [
                ((4.0, 4.0), ShapeError, "must have 3 sides"),
                (np.eye(3), ShapeError, "one for each axis"),
                ("wide", ShapeError, "got str"),
                (-4.0, DomainError, "must be positive"),
                (np.nan, DomainError, "must be positive"),
                ({}, ShapeError, "got dict"),
            ]
        ),
        (lambda: bm.pair_potential(own, DATA, cutoff=1.0, box=4.0), ShapeError, "one for each axis"),
        (lambda: bm.Box((1.0, -1.0, 1.0)), DomainError, "sides of a box must be positive"),
        (lambda: bm.Box(3.0), ShapeError, "one for each axis"),
        (lambda: bm.dipoles((0, 0, 1.0)).inside(BOX), DomainError, "needs a cutoff of at most half a side, 1.7"),
        (lambda: bm.dipoles((0, 0, 1.0), cutoff=1.8).inside(BOX), DomainError, "cutoff of dipoles is 1.8, but .* at most half .* 1.7"),
        (lambda: bm.pair_potential(own, DATA, cutoff=2.0, box=BOX), DomainError, "at most half"),
        (lambda: bm.soft_spheres(cutoff=(2.0, 1.0)), DomainError, "the smaller one first"),
        (lambda: bm.soft_spheres(cutoff=-1.0), DomainError, "cutoff must be positive"),
        (lambda: bm.gravity(1.0).inside(BOX), DomainError, "there are none"),
        (lambda: bm.rigid_bodies(mass=[1.0], inertia=[[1, 1, 1]], potential=lambda x, R: 0.0, box=BOX), DomainError, "one function of all bodies"),
        (lambda: bm.soft_spheres(cutoff=1.0).inside(bm.Box((4.0, 4.0)))(*map(jnp.asarray, spread())), ShapeError, "has 2 sides"),
    ],
)
def test_boxes_and_cutoffs_that_do_not_fit_are_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()
