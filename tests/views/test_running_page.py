"""Pages that run, as data: sliders and where they write, what is refused, how states become poses. What they compute is tested in a browser."""

import re
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.drawing import Drawing, Part
from bismut.engines.native.wasm import available
from bismut.engines.native.wasm_object import _leb, _number, _signed, _sleb
from bismut.errors import BismutError, DomainError
from bismut.gallery import entries
from bismut.mechanics import State
from bismut.views import page_of
from bismut.views.document import _library
from bismut.views.live_poses import poses
from bismut.views.running_program import controls_of


def particle(**parameters):
    potential = lambda q, parameters: 0.5 * parameters["stiffness"] * jnp.sum(q**2) + parameters["pull"] @ q
    return bm.mechanical(bm.Euclidean(2), potential=potential, parameters={"stiffness": 1.0, "pull": jnp.array([0.0, -0.5])} | parameters)


@cache
def page() -> bm.Page:
    scheme = bm.Langevin(particle(), temperature=0.5, friction=0.3)
    return bm.page(scheme, scheme.start(jnp.array([1.0, 0.0]), temperature=0.5), step=0.05, trajectories=3, seed=2**40 + 1)


def test_whole_numbers_in_seven_bits_a_byte():
    for value in (0, 1, 63, 64, 127, 128, 8191, 8192, 65536, 2**31 - 1):
        assert _number(_leb(value), 0) == (value, len(_leb(value)))
        assert _signed(_sleb(value)) == value
    assert _signed(b"\x7f") == -1


def test_llvm_here_writes_webassembly():
    assert available()


def test_a_parameter_is_the_entries_that_its_slider_writes():
    """As sliders: the temperature of the bath, and every entry of a parameter; in the numbers of the steps and of the start."""
    controls = {(one["name"], one["entry"]): one for one in page().program["controls"]}
    assert set(controls) == {("temperature", None), ("stiffness", None), ("pull", 0), ("pull", 1)}
    numbers = page().program["program"]["manifest"]["numbers"]
    for one in controls.values():
        assert len(one["program"]) == 1
        leaf, entry = one["program"][0]
        assert entry < max(1, int(np.prod(numbers[leaf]["shape"])))
    assert controls["pull", 0]["program"][0][1] + 1 == controls["pull", 1]["program"][0][1]
    assert controls["stiffness", None]["start"], "momenta are drawn by the system, which knows its parameters"


def test_the_page_is_small_and_holds_all_it_needs():
    assert page().code_size < 40_000
    assert not re.search("@[A-Z]+@", page().html), "every place of the template is filled"
    assert not re.search(r"""(src|href)=["']?https?:""", page().html)
    assert page()._repr_html_().startswith("<iframe")
    assert [word for _, word in page().program["seed"]["program"]] == [0, 1], "the low and the high word of the seed"


def test_the_page_of_the_top_is_small_without_the_program_that_draws():
    made = page_of(entries()["heavy-top"], trajectories=100)
    assert made.code_size < 20_000
    assert len(made.html) - len(_library()[0]) < 150_000


@pytest.mark.long
@pytest.mark.parametrize("name", [name if name == "sine-euler" else pytest.param(name, marks=pytest.mark.slow) for name in entries()])
def test_programs_of_the_gallery_are_small(name):
    """Below 200 kB each; that of sine-euler, whose 63 unknowns are written out, is the largest."""
    assert 1000 < page_of(entries()[name]).code_size <= 200_000


def test_ranges_of_sliders():
    scheme = bm.Verlet(particle(stiffness=3.0))
    found = {(one.name, one.entry): (one.low, one.high) for one in controls_of([scheme], None)}
    assert found == {("stiffness", None): (0.0, 10.0), ("pull", 0): (0.0, 1.0), ("pull", 1): (-2.0, 2.0)}
    assert [(one.low, one.high) for one in controls_of([scheme], {"stiffness": (1, 2)})] == [(1.0, 3.0)]  # never without the value it has
    with pytest.raises(DomainError, match=r"stifness.*stiffness"):
        controls_of([scheme], {"stifness": None})
    with pytest.raises(DomainError, match="a pair"):
        controls_of([scheme], {"stiffness": 3})
    with pytest.raises(DomainError, match="a pair"):
        controls_of([scheme], {"stiffness": (2, 1)})


def test_overdamped_motion_has_a_page():
    """With sliders of its temperature and its energy; of a state only the places are plotted."""
    scheme = bm.Brownian(particle(), temperature=0.5, mobility=2.0)
    made = bm.page(scheme, scheme.start(jnp.array([1.0, 0.0])), step=0.05, trajectories=3, seed=4, observe={"q": lambda state: state.q})
    assert [(one["name"], one["entry"]) for one in made.program["controls"]] == [("temperature", None), ("pull", 0), ("pull", 1), ("stiffness", None)]
    assert [one["name"] for one in made.program["observables"]] == ["q"]
    assert made.undrawn is None
    assert 0 < made.code_size < 40_000


def test_what_is_wrong_is_said():
    scheme = bm.Verlet(particle())
    start = scheme.start(jnp.zeros(2), velocity=jnp.ones(2))
    with pytest.raises(DomainError, match="step must be positive"):
        bm.page(scheme, start, step=0.0)
    with pytest.raises(DomainError, match="seed= or noise="):
        bm.page(scheme, start, step=0.1, seed=1, noise=bm.Wiener(1))
    with pytest.raises(DomainError, match="8 numbers; a page plots at most 6"):
        bm.page(scheme, start, step=0.1, observe={"many": lambda state: jnp.zeros(8)})
    verlet = bm.Verlet(bm.mechanical(bm.Euclidean(2), potential=lambda q: jnp.sum(jnp.fft.fft(q).real ** 2)))
    begin = verlet.start(jnp.zeros(2), velocity=jnp.ones(2))
    with pytest.raises(BismutError, match="There is no page that runs this"):
        bm.page(verlet, begin, step=0.1)


def test_schemes_side_by_side_share_sliders_and_plots():
    """A slider writes into every program that knows its parameter; one in which the schemes differ is what they are compared for, and has none."""
    system = particle()
    schemes = {"hot": bm.Langevin(system, temperature=2.0, friction=0.3), "cold": bm.Langevin(system, temperature=0.1, friction=0.3)}
    schemes["alone"] = bm.Verlet(system)
    start = schemes["alone"].start(jnp.array([1.0, 0.0]), velocity=jnp.array([0.0, 0.5]))
    made = bm.page(schemes, start, step=0.05, trajectories=4)
    assert [one["name"] for one in made.programs] == ["hot", "cold", "alone"]
    names = [(one["name"], one["entry"]) for one in made.program["controls"]]
    assert names == [("pull", 0), ("pull", 1), ("stiffness", None)]
    for one in made.programs:
        assert [(c["name"], c["entry"], c["value"]) for c in one["controls"]] == [("pull", 0, 0.0), ("pull", 1, -0.5), ("stiffness", None, 1.0)]
        assert all(len(c["program"]) == 1 for c in one["controls"])
        assert [o["name"] for o in one["observables"]] == ["energy"], "what all of them have"
    assert made.code_size == sum(one["program"]["bytes"] for one in made.programs)
    assert made.shown["title"] == "hot, cold, alone"
    assert [one["scheme"] for one in made.shown["script"]["runs"]] == ['schemes["hot"]', 'schemes["cold"]', 'schemes["alone"]']
    other = {"a": bm.Verlet(system), "b": bm.Verlet(bm.mechanical(bm.Euclidean(2), potential=lambda q: q @ q))}
    (slider, *_), (none, *_) = (one["controls"] for one in bm.page(other, start, step=0.05, controls={"stiffness": None}).programs)
    assert slider["program"]
    assert none["program"] == none["start"] == []
    with pytest.raises(DomainError, match=r"'temperature', whose value differs"):
        bm.page(schemes, start, step=0.05, controls={"temperature": None})
    with pytest.raises(DomainError, match=r"have their names, hot, cold, alone; it has hot"):
        bm.page(schemes, {"hot": start}, step=0.05)
    with pytest.raises(DomainError, match="takes a scheme, or several"):
        bm.page({}, start, step=0.05)


def test_a_path_says_how_far_it_reaches():
    """The page stops where the path ends, has no more trajectories than it, and keeps the step it was recorded with."""
    system = bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.5 * q @ q, noise=lambda q: q[:1])
    scheme = bm.Verlet(system)
    start = scheme.start(jnp.ones(2), velocity=jnp.zeros(2))
    data = np.random.default_rng(1).normal(size=(5, 30, 1))
    shown = bm.page(scheme, start, step=0.1, trajectories=9, noise=bm.Recorded(data, step=0.1)).shown
    assert (shown["ends"], shown["trajectories"], shown["most"], shown["any_step"], shown["seed"]) == (30, 5, 5, False, None)
    shown = bm.page(scheme, start, step=0.1, noise=bm.FractionalBrownian(3, hurst=0.7, steps=64)).shown
    assert (shown["ends"], shown["most"], shown["any_step"]) == (64, 10_000, True)
    assert bm.page(scheme, start, step=0.1, noise=bm.OrnsteinUhlenbeck(3, correlation_time=0.3)).shown["ends"] is None
    assert "`scheme`, `start` and `noise`" in bm.page(scheme, start, step=0.1, noise=bm.Jumps(1, rate=1.0, size=0.1)).shown["script"]["setup"]
    with pytest.raises(BismutError, match="2 channels, but the noise of the system has 1"):
        bm.page(scheme, start, step=0.1, noise=bm.Recorded(np.zeros((5, 2))))


def test_a_page_that_is_dear_says_what_it_would_cost(monkeypatch):
    monkeypatch.setattr("bismut.views.running_program.DEAR", 10)
    scheme = bm.Verlet(particle())
    with pytest.raises(BismutError, match=r"a step of one trajectory takes .* operations, about .* s in a browser"):
        bm.page(scheme, scheme.start(jnp.zeros(2), velocity=jnp.ones(2)), step=0.1)


def test_what_a_page_would_cost_grows_with_its_trajectories(monkeypatch):
    """A step is one of all of them; where starts are fewer than what was asked for, of those."""
    monkeypatch.setattr("bismut.views.running_program.DEAR", 3000)
    scheme = bm.Verlet(particle())
    start = scheme.start(jnp.zeros(2), velocity=jnp.ones(2))
    few = scheme.start(jnp.zeros((2, 2)), velocity=jnp.ones((2, 2)))
    with pytest.raises(BismutError, match=r"a step of 1000 trajectories takes .* operations, about .* s in a browser"):
        bm.page(scheme, start, step=0.1, trajectories=1000)
    assert 0 < 2 * bm.page(scheme, start, step=0.1).program["operations"] < 3000
    assert bm.page(scheme, few, step=0.1, trajectories=1000).shown["trajectories"] == 2


def test_a_page_whose_code_is_long_says_so_and_large_writes_both(monkeypatch):
    """What is long or dear is refused in words, and written all the same where that is asked for."""
    scheme = bm.Verlet(particle())
    start = scheme.start(jnp.zeros(2), velocity=jnp.ones(2))
    monkeypatch.setattr("bismut.views.running_program.LONG", 1000)
    with pytest.raises(BismutError, match=r"its code is 0 MB long before LLVM shortens it, which takes minutes"):
        bm.page(scheme, start, step=0.1)
    monkeypatch.setattr("bismut.views.running_program.DEAR", 10)
    assert 0 < bm.page(scheme, start, step=0.1, large=True).code_size < 40_000


def test_a_picture_is_followed_through_numpy():
    """x = (sin q₀, q₁², 0): no choice of entries and not affine, so it becomes a function that JAX traces, equal to the picture."""
    picture = lambda system, q: Drawing(np.stack([np.sin(q[:, :1]), q[:, 1:] ** 2, np.zeros_like(q[:, 1:])], -1), None, [Part("ball", 0.1)])
    found = poses(particle(), State(np.array([0.3, -0.2]), np.zeros(2)), picture)
    assert found.function is not None
    values = np.asarray(found.function(State(jnp.array([0.7, 0.4]), jnp.zeros(2))))
    assert np.allclose(values, [np.sin(0.7), 0.16, 0.0], atol=1e-12)


def test_a_picture_of_entries_is_a_choice_of_them():
    picture = lambda system, q: Drawing(np.stack([q[:, 1], 2 * q[:, 0] + 1, np.zeros(len(q))], -1)[:, None], None, [Part("ball", 0.1)])
    found = poses(particle(), State(np.array([0.3, -0.2]), np.zeros(2)), picture)
    assert found.function is None
    assert np.allclose(found.constant, [0, 1, 0])
    assert np.allclose(found.factors, [1, 2])
    assert found.columns.tolist() == [1, 0]


def test_a_picture_that_looks_at_other_times_is_not_drawn():
    """What depends on all frames together is no function of a state: the page says so, and has plots."""
    picture = lambda system, q: Drawing(np.exp(q[:, None, :1] / np.abs(q).max()) * np.ones(3), None, [Part("ball", 0.1)])
    scheme = bm.Verlet(particle())
    made = bm.page(scheme, scheme.start(jnp.ones(2), velocity=jnp.ones(2)), step=0.1, picture=picture)
    assert made.undrawn is not None
    assert made.undrawn.startswith("No bodies are drawn: its picture")


def test_parameters_are_changed_as_a_slider_does():
    scheme = bm.Langevin(particle(), temperature=0.5, friction=0.3)
    other = bm.with_parameters(scheme, {"stiffness": 2.0, "temperature": 0.7, "pull": [1.0, 2.0]})
    assert float(other.system.parameters["stiffness"]) == 2.0
    assert float(vars(other)["temperature"].value) == 0.7
    assert np.asarray(other.system.parameters["pull"]).tolist() == [1.0, 2.0]
    with pytest.raises(DomainError, match="no parameter 'stifness'"):
        bm.with_parameters(scheme, {"stifness": 2.0})
