"""What a page is given: poses to ten thousandths, every gallery system drawn, clear words where there is nothing to draw."""

import zlib
from base64 import b64decode

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.drawing import SPACE, Drawing, Line, Part, about_third, quaternions, semi_axes, towards
from bismut.errors import BismutError
from bismut.gallery import entries, entry
from bismut.views.default_drawing import default_drawing
from bismut.views.motion import Motion, colours
from bismut.views.scene import Panel, Scene


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(b64decode(text)), kind)


def random_rotations(count: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(count, 3)) * 2
    return np.stack([np.asarray(bm.SO3().from_rotation_vector(jnp.asarray(v))) for v in vectors])


def test_quaternions_turn_vectors_as_their_rotations_do():
    R = np.concatenate([random_rotations(40), [np.diag([1.0, -1, -1]), np.diag([-1.0, 1, -1]), np.diag([-1.0, -1, 1]), np.eye(3)]])
    w, v = quaternions(R)[:, :1], quaternions(R)[:, 1:]
    z = np.random.default_rng(1).normal(size=3)
    turned = z + 2 * np.cross(v, np.cross(v, z) + w * z)
    assert np.abs(turned - R @ z).max() < 1e-14


def test_a_pose_in_a_page_is_right_to_ten_thousandths_of_the_scene():
    x, R = np.random.default_rng(2).normal(size=(5, 4, 3)), random_rotations(20).reshape(5, 4, 3, 3)
    data = Scene("some", np.arange(5.0), [Panel("one", Drawing(x, R, [Part("ellipsoid", 1.0)]), {})]).data()["panels"][0]
    lo, hi = np.array(data["lo"]), np.array(data["hi"])
    places = lo + (hi - lo) * unpacked(data["x"], "<u2").reshape(x.shape) / 65534
    turns = unpacked(data["turns"], "<i2").reshape(5, 4, 4) / 32767
    assert np.abs(places - x).max() < 1e-4
    assert np.abs(np.abs((turns * quaternions(R)).sum(-1)) - 1).max() < 1e-4


def test_a_failed_trajectory_is_gone_from_its_failure_on():
    x = np.zeros((3, 2, 3))
    x[2, 1] = np.nan
    data = Scene("some", np.arange(3.0), [Panel("one", Drawing(x), {})]).data()["panels"][0]
    assert ((unpacked(data["x"], "<u2").reshape(3, 2, 3) == 65535).any(-1) == [[False, False], [False, False], [False, True]]).all()


def test_the_third_axis_is_taken_to_any_direction():
    u = np.random.default_rng(3).normal(size=(20, 3))
    R = towards(u)
    assert np.abs(R[..., 2] - u / np.linalg.norm(u, axis=-1, keepdims=True)).max() < 1e-14
    assert np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max() < 1e-14
    assert np.allclose(np.linalg.det(R), 1)


def test_an_ellipsoid_has_the_moments_it_is_drawn_for():
    a, mass = np.array([0.5, 0.8, 1.1]), 2.0
    moments = mass / 5 * (a @ a - a**2)
    assert np.abs(semi_axes(moments, mass) - a).max() < 1e-14


@pytest.mark.parametrize("name", [name for name in entries() if name != "underwater-vehicle-reduced"])
def test_every_system_of_the_gallery_has_its_picture(name):
    """Of three frames that are made up: points at random."""
    one = entry(name)
    system = one.system()
    points = [system.space.random(jax.random.key(seed)) for seed in range(3)]
    q = jax.tree.map(lambda *frames: np.stack(frames), *points)
    # After reduction by symmetry momenta are what is seen: those of the start, in three sizes.
    p = jax.tree.map(lambda leaf: np.stack([leaf, 0.5 * leaf, -leaf]), one.start(one.scheme(system)).p) if system.reduced else None
    motion = Motion(name, np.arange(3.0), q, p, system)
    drawing = (one.picture or default_drawing)(system, motion.configuration)
    data = Scene(name, np.arange(3.0), [Panel("one", drawing, {})]).data()
    assert data["panels"][0]["parts"]
    moved = np.abs(np.diff(np.asarray(drawing.x, float), axis=0)).max() + (0 if drawing.R is None else np.abs(np.diff(drawing.R, axis=0)).max())
    assert moved > 0


def lines_of(drawing: Drawing) -> np.ndarray:
    """Lengths of all lines at all frames."""
    x = np.concatenate([np.asarray(drawing.x), np.zeros((len(drawing.x), 1, 3))], 1)  # SPACE = −1 is the last
    return np.concatenate([np.linalg.norm(x[:, np.atleast_1d(line.first)] - x[:, np.atleast_1d(line.second)], axis=-1) for line in drawing.lines], 1)


def test_the_links_of_a_chain_have_their_length():
    one = entry("pendulum-chain")
    assert one.picture is not None
    turns = np.random.default_rng(7).normal(size=(5, 3, 3))
    x = np.cumsum(turns / np.linalg.norm(turns, axis=-1, keepdims=True), 1)
    assert np.abs(lines_of(one.picture(one.system(), x)) - 1).max() < 1e-12


def test_a_lattice_is_drawn_with_all_its_springs():
    one = entry("spring-lattice")
    assert one.picture is not None
    drawing = one.picture(one.system(), np.asarray(one.system().parameters["rest"])[None])
    assert lines_of(drawing).shape == (1, 42)


def test_ready_made_energies_are_seen():
    """Dipoles give arrows along their moments, springs lines between their ends, soft spheres the size, and the box its sides."""
    moments, box = np.array([[1.0, 0, 0], [0, 1.0, 0]]), bm.Box((6.0, 6.0, 6.0))
    energy = bm.soft_spheres(0.8, cutoff=2.5) + bm.dipoles(moments, cutoff=2.5) + bm.springs([(0, 1)], points=((0.1, 0, 0), (0, 0.2, 0)))
    system = bm.rigid_bodies(mass=[1.0, 1.0], inertia=np.ones((2, 3)), potential=energy, box=box)
    drawing = default_drawing(system, (np.zeros((1, 2, 3)), np.tile(np.eye(3), (1, 2, 1, 1))))
    bodies, arrows = drawing.parts
    assert np.allclose(bodies.size, 0.4)
    assert arrows.kind == "arrow"
    assert np.allclose(np.asarray(arrows.turn)[..., 2], moments)
    (line,) = drawing.lines
    assert np.allclose([line.first_at, line.second_at], [[[0.1, 0, 0]], [[0, 0.2, 0]]])
    assert drawing.box == (6.0, 6.0, 6.0)


def test_forces_of_ones_own_change_no_picture():
    """Box, sizes, arrows and springs are those of the energy, whether its derivative is computed or given; and of what is exported."""
    energy = bm.soft_spheres(0.8, cutoff=1.9) + bm.dipoles((0.0, 0.0, 1.0), cutoff=1.9) + bm.springs([(0, 1)])
    derived = energy.inside((4.0, 4.0, 4.0))

    def forces(x, R):
        slope = jax.grad(lambda e: derived(*((bm.Euclidean(3) * bm.SO3()) ** 2).nudge((x, R), e)))((jnp.zeros((2, 3)), jnp.zeros((2, 3))))
        return -slope[0], -jnp.einsum("kij,kj->ki", R, slope[1])

    bodies = {"mass": [1.0, 1.0], "inertia": np.ones((2, 3)), "box": 4.0}
    plain, given = (bm.rigid_bodies(potential=energy, **bodies, **more) for more in ({}, {"forces": forces}))
    q = (np.array([[[0.0, 0, 0], [1.0, 0, 0]]]), np.tile(np.eye(3), (1, 2, 1, 1)))
    one, other = (default_drawing(system, q) for system in (plain, given))
    assert one.box == other.box == (4.0, 4.0, 4.0)
    assert len(one.parts) == len(other.parts) == 2
    assert np.allclose(one.parts[0].size, 0.4)
    assert len(one.lines) == len(other.lines) == 1
    for a, b in zip((*one.parts, *one.lines), (*other.parts, *other.lines), strict=True):
        jax.tree.map(np.testing.assert_array_equal, tuple(a), tuple(b))
    state = bm.State(q=(q[0][0], q[1][0]), p=(jnp.zeros((2, 3)), jnp.zeros((2, 3))))
    tensors = [np.asarray(bm.pressure_tensor(bm.Verlet(system), state)) for system in (plain, given)]
    np.testing.assert_array_equal(*tensors)


def test_dipoles_under_an_ewald_sum_keep_their_arrows():
    moments = np.array([[0.0, 0, 2.0], [0, 1.0, 0]])
    system = bm.rigid_bodies(mass=[1.0, 1.0], inertia=np.ones((2, 3)), potential=bm.dipoles(moments, ewald=bm.Ewald(1e-2)), box=6.0)
    _, arrows = default_drawing(system, (np.zeros((1, 2, 3)), np.tile(np.eye(3), (1, 2, 1, 1)))).parts
    assert arrows.kind == "arrow"
    assert np.allclose(np.asarray(arrows.turn)[..., 2], moments / np.linalg.norm(moments, axis=1)[:, None])


def test_gay_berne_bodies_are_rods_along_their_axis():
    system = bm.rigid_bodies(mass=[1.0, 1.0], inertia=np.ones((2, 3)), potential=bm.gay_berne(elongation=4.0, breadth=0.5, axis=(1.0, 0, 0)))
    (part,) = default_drawing(system, (np.array([[[0.0, 0, 0], [3.0, 0, 0]]]), np.tile(np.eye(3), (1, 2, 1, 1)))).parts
    assert part.kind == "rod"
    assert np.allclose(part.size, [0.25, 0.25, 1.0])
    assert np.allclose(np.asarray(part.turn)[..., 2], [1.0, 0, 0])


def test_point_clouds_lie_where_their_points_are():
    water = bm.body([[0.0, 0, 0], [1, 1, 0], [-1, 1, 0]], [16.0, 1, 1])
    x, R = np.random.default_rng(4).normal(size=(1, 2, 3)), random_rotations(2)[None]
    (part,) = default_drawing(None, (x, R), shapes=water).parts
    places = x[0][part.body] + np.einsum("nij,nj->ni", R[0][part.body], part.at)
    assert np.abs(places - np.asarray(bm.points_of(x[0], R[0], water.points)).reshape(-1, 3)).max() < 1e-14


def test_a_turn_about_the_third_axis():
    assert np.allclose(about_third(np.pi / 2) @ [1.0, 0, 0], [0, 1, 0])


def test_view_says_what_is_missing():
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q))
    result = bm.simulate(scheme, scheme.start(jnp.ones(1), velocity=jnp.zeros(1)), step=0.1, steps=2, trajectories=1, observe={"energy": bm.energy})
    with pytest.raises(BismutError, match=r"This result holds no trajectories to view, only statistics: energy. Keep some with observe=\{'paths'"):
        bm.view(result)
    with pytest.raises(BismutError, match=r"numbered 0 \.\.\. 1, or SPACE"):
        Scene("some", np.arange(1.0), [Panel("one", Drawing(np.zeros((1, 2, 3)), lines=[Line(SPACE, 2)]), {})]).data()
    with pytest.raises(BismutError, match="ball, ellipsoid"):
        Scene("some", np.arange(1.0), [Panel("one", Drawing(np.zeros((1, 2, 3)), parts=[Part("cube", 1.0)]), {})]).data()
    with pytest.raises(BismutError, match="a result, a trajectory or a run folder, got int"):
        bm.view(3)


def test_colours_are_what_they_say():
    system = bm.rigid_bodies(mass=[2.0, 3.0], inertia=[[1.0, 2, 3], [2.0, 2, 3]])
    scheme = bm.VariationalEuler(system)
    v, w = np.array([[1.0, 0, 0], [0, 2, 0]]), np.array([[0.0, 1, 0], [0, 0, 2]])
    start = scheme.start((np.array([[0.0, 0, 0], [5, 0, 0]]), np.tile(np.eye(3), (2, 1, 1))), velocity=(v, w))
    scene = bm.view(bm.trajectory(scheme, start, step=0.01, steps=1), system=system).scene
    colours = scene.panels[0].colours
    assert np.allclose(colours["kinetic energy"][0], [0.5 * 2 + 0.5 * 2, 0.5 * 3 * 4 + 0.5 * 3 * 4])
    assert np.allclose(colours["angular speed"][0], [1, 2])
    assert np.allclose(colours["speed"][0], [1, 2])


def test_a_thousand_bodies_and_two_hundred_frames_fit_into_ten_megabytes():
    """Random walks and turns, which compress worst, with three numbers to colour by."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(200, 1000, 3)).cumsum(0)
    R = towards(generator.normal(size=(200, 1000, 3)))
    numbers = {name: generator.normal(size=(200, 1000)) for name in ("kinetic energy", "angular speed", "speed")}
    parts = [Part("ellipsoid", (0.3, 0.3, 0.5)), Part("arrow", (0.1, 0.1, 0.8), colour="#1a1a1a")]
    view = bm.View(Scene("many", np.arange(200.0), [Panel("one", Drawing(x, R, parts), numbers)]))
    assert len(view.html.encode()) < 8e6
    assert "http://" not in view.html.split("<script", 1)[1].split("</script>", 1)[0]
    assert view._repr_html_().startswith("<iframe")


def test_without_k3d_the_error_names_the_extra(monkeypatch):
    from importlib import metadata

    from bismut.views import document as page

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(page.metadata, "distribution", missing)
    page._library.cache_clear()
    scene = Scene("one", np.arange(1.0), [Panel("one", Drawing(np.zeros((1, 1, 3)), None, [Part("ball", 0.1)]), {})])
    with pytest.raises(BismutError, match=r"pip install 'bismut\[view\]'"):
        page.page(scene)
    page._library.cache_clear()


def test_a_film_that_cannot_be_written_says_what_is_missing(monkeypatch, tmp_path):
    from matplotlib.animation import writers

    from bismut.figures.runs.animation import animate

    monkeypatch.setattr(writers, "is_available", lambda name: False)
    scene = Scene("one", np.arange(1.0), [Panel("one", Drawing(np.zeros((1, 1, 3)), None, [Part("ball", 0.1)]), {})])
    with pytest.raises(BismutError, match="needs ffmpeg"):
        animate(scene, tmp_path / "a.mp4")


def test_a_colour_is_a_name_of_the_palette_or_a_number():
    draw = lambda colour: Scene("one", np.arange(1.0), [Panel("one", Drawing(np.zeros((1, 1, 3)), None, [Part("ball", 0.1, colour=colour)]), {})])
    assert draw("ink").data()["panels"][0]["parts"][0]["colour"] == "ink"
    with pytest.raises(BismutError, match="'inky'"):
        draw("inky").data()


def test_energies_of_frames_are_those_of_their_times():
    """U = (1 + t) q²/2, at rest: the colour of frame k is H(q, p, t_k)."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q, t: 0.5 * (1 + t) * q @ q)
    times = np.array([0.0, 1.0, 3.0])
    found = colours(Motion("one", times, np.ones((3, 1)), np.zeros((3, 1)), system), 1)
    np.testing.assert_allclose(found["energy"][:, 0], 0.5 * (1 + times), rtol=1e-14)
