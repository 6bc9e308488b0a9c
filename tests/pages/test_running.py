"""Pages that run, in a real browser with the network off: the same bits as Python, sliders that act, and nothing on the console."""

import runpy
from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import bismut as bm
from bismut.cli.main import app
from bismut.gallery import entry
from bismut.views import page_of
from tests.machines import catalogue
from tests.pages.browser import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


def opened(browser: Browser, page: bm.Page, folder: Path) -> None:
    reopened(browser, page.save(folder / "page.html"))


def reopened(browser: Browser, file: Path) -> None:
    browser.errors.clear()
    browser.requests.clear()
    browser.open(file)


def ran(browser: Browser, folder: Path) -> dict[str, Any]:
    """What the script of the page makes."""
    script = folder / "again.py"
    script.write_text(browser.run("bismut.script()"))
    return runpy.run_path(str(script))


def quiet(browser: Browser) -> None:
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "blob:", "data:"))] == []


def states(browser: Browser, like: Any, which: int = 0) -> list[np.ndarray]:
    """The states of all trajectories of a scheme, as arrays like those of Python."""
    text = (
        f"bismut.states({which})"
        + """.then(({states}) => states.map((one) => {
        let letters = ""; for (const byte of new Uint8Array(one.buffer)) letters += String.fromCharCode(byte); return btoa(letters); }))"""
    )
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(like)]
    return [np.frombuffer(b64decode(one), leaf.dtype).reshape(leaf.shape) for one, leaf in zip(browser.run(text), leaves, strict=True)]


def same(browser: Browser, result: bm.Result, which: int = 0) -> None:
    final = jax.tree.leaves(result.final)
    for here, there in zip(states(browser, result.final, which), final, strict=True):
        assert here.tobytes() == np.asarray(there).tobytes()


def fields(browser: Browser, **values: Any) -> None:
    """Type into fields, as a hand would, and wait until the page has answered."""
    for name, value in values.items():
        place = name.replace("_", "-")
        browser.run(f'{{ const one = document.getElementById("{place}"); one.value = "{value}"; one.dispatchEvent(new Event("change")); }}')
    browser.run("bismut.restart()")


@cache
def top() -> bm.Page:
    return page_of(entry("heavy-top"), trajectories=20, seed=7)


@pytest.mark.parametrize("name", catalogue.names())
def test_the_bits_are_those_that_are_published(name, browser, tmp_path):
    """Those of plain arithmetic, on any processor; a sweep is what its slider does."""
    scheme, start, settings = catalogue.build(name)
    noise = {"noise": settings["path"]} if "path" in settings else {"seed": settings["seed"]}
    page = bm.page(scheme, start, step=settings["step"], trajectories=settings["trajectories"], observe={}, **noise)
    opened(browser, page, tmp_path)
    swept = settings.get("sweep", {})
    for parameter, values in swept.items():
        fields(browser, **{f"number_{[c['name'] for c in page.program['controls']].index(parameter)}": values[-1]})
    browser.run(f"bismut.run({settings.get('burn_in', 0) + settings['steps']}).then(() => null)")
    here = states(browser, example(scheme, start, settings["trajectories"]))
    if swept:
        last = [leaf[-1] for leaf in jax.tree.leaves(catalogue.run(name, "plain").final)]
        assert catalogue.digest(here) == catalogue.digest(last)
    else:
        assert catalogue.digest(here) == catalogue.published()[name]["plain"]["states"]
    quiet(browser)


def example(scheme: Any, start: Any, trajectories: int) -> list[np.ndarray]:
    from bismut.ensembles.starts import start_at

    shapes = jax.tree.leaves(start_at(scheme, start, 0.0).example)
    return [np.empty((trajectories, *shape.shape), shape.dtype) for shape in shapes]


@pytest.mark.parametrize("name", ["heavy-top", "pendulum", "magnetic-dipoles", "heavy-top-reduced", "spherical-pendulum", "spring-lattice"])
def test_a_thousand_steps_are_those_of_python(name, browser, tmp_path):
    model = entry(name)
    scheme = model.scheme(model.system())
    page = top() if name == "heavy-top" else page_of(model, trajectories=20, seed=7)
    opened(browser, page, tmp_path)
    for part in (1, 299, 700):  # cut anywhere
        browser.run(f"bismut.run({part}).then(() => null)")
    run = {"step": model.step, "steps": 1000, "trajectories": 20, "seed": 7}
    result = bm.simulate(
        scheme, model.start(scheme), **run, every=1000, observe={"energy": bm.energy}, arithmetic="plain", mode="native", progress=False
    )
    same(browser, result)
    energies = browser.run("[...bismut.state().observed[0][0]]")
    assert abs(np.mean(energies) - float(result.energy.mean[-1])) <= 1e-12 * max(1.0, abs(np.mean(energies)))
    quiet(browser)


DEAR = {"dipoles-in-a-box", "points-in-a-box", "ewald-sum", "fractional-noise"}


@pytest.mark.parametrize("name", catalogue.names())
def test_a_thousand_steps_of_every_system_of_the_catalogue_are_those_of_python(name, browser, tmp_path):
    """What is published is shorter; a sweep is left out, a path that ends has a thousand steps, and what is dear has one trajectory."""
    scheme, start, settings = catalogue.build(name)
    path = bm.FractionalBrownian(3, hurst=0.7, steps=1000) if name == "fractional-noise" else settings.get("path")
    run = {"step": settings["step"], "trajectories": 1 if name in DEAR else min(4, settings["trajectories"])}
    noise = {"seed": settings["seed"]} if path is None else {"noise": path}
    opened(browser, bm.page(scheme, start, **run, observe={}, **noise), tmp_path)
    for part in (1, 299, 700):
        browser.run(f"bismut.run({part}).then(() => null)")
    drive = {"seed": settings["seed"]} if path is None else {"path": path}
    same(browser, bm.simulate(scheme, start, **run, steps=1000, every=1000, arithmetic="plain", mode="native", progress=False, **drive))
    assert browser.run("bismut.state().failures.count") == 0
    quiet(browser)


def test_sliders_act_and_the_script_makes_the_same_bits(browser, tmp_path):
    opened(browser, top(), tmp_path)
    browser.run("bismut.run(50).then(() => null)")
    before = browser.run("bismut.state().observed[0][0][0]")
    place = [control["name"] for control in top().program["controls"]].index("weight")
    slider = f'{{ const one = document.getElementById("slider-{place}"); one.value = 6.5; one.dispatchEvent(new Event("input")); }}'
    browser.run(slider)
    browser.run("bismut.run(70).then(() => null)")
    assert browser.run("bismut.state().values")[place] == 6.5
    assert browser.run(f'document.getElementById("number-{place}").value') == "6.5"
    assert browser.run("bismut.state().observed[0][0][0]") != before
    fields(browser, seed=11, step=0.02, trajectories=5)
    assert browser.run("bismut.state().k") == 0
    browser.run("bismut.run(40).then(() => null)")
    browser.run(slider.replace("6.5", "2.25"))
    browser.run("bismut.run(60).then(() => null)")
    result = ran(browser, tmp_path)["result"]
    assert result.steps_done == 100
    same(browser, result)
    quiet(browser)


def test_what_is_asked_for_without_waiting_is_in_the_script(browser, tmp_path):
    """Values are those that a step was made with, however many changes were asked for meanwhile; a change before a restart is none of the new run."""
    opened(browser, top(), tmp_path)
    place = [control["name"] for control in top().program["controls"]].index("weight")
    together = lambda *orders: browser.run(f"Promise.all([{', '.join(f'bismut.{order}' for order in orders)}]).then(() => null)")
    change = lambda value: f"change({place}, {value})"
    together(change(6.5), "run(20)", change(2.25), "run(30)")
    result = ran(browser, tmp_path)["result"]
    assert result.steps_done == 50
    same(browser, result)
    together("run(10)", change(4.0), "restart()", "run(15)", change(3.0), "run(5)")
    result = ran(browser, tmp_path)["result"]
    assert result.steps_done == 20
    same(browser, result)
    assert np.allclose(browser.run("bismut.plots[0].history.map((one) => one.t)"), [0.0, 15 * top().shown["step"], 20 * top().shown["step"]])
    quiet(browser)


def test_a_seed_may_begin_with_zeros(browser, tmp_path):
    opened(browser, top(), tmp_path)
    fields(browser, seed="007", trajectories=3)
    browser.run("bismut.run(5).then(() => null)")
    assert "seed=7," in browser.run("bismut.script()")
    same(browser, ran(browser, tmp_path)["result"])
    quiet(browser)


ODD = """import jax; jax.config.update("jax_enable_x64", True)
import bismut as bm, jax.numpy as jnp
potential = lambda q, parameters: 0.5 * parameters["constructor"] * q @ q + parameters["__proto__"] * q[0]
mass = lambda q, parameters: parameters["toString"] * jnp.eye(2)
system = bm.mechanical(bm.Euclidean(2), mass=mass, potential=potential, parameters={"constructor": 1.0, "__proto__": 0.5, "toString": 2.0})
scheme = bm.Langevin(system, temperature=0.5, friction=0.3)
start = scheme.start(jnp.array([1.0, 0.0]), temperature=0.5)"""


def test_names_that_javascript_knows_and_changes_before_the_first_step(browser, tmp_path):
    """Parameters may be called like members of every object; momenta are drawn with the parameters with which the first step is made."""
    made: dict[str, Any] = {}
    exec(ODD, made)
    opened(browser, bm.page(made["scheme"], made["start"], step=0.05, trajectories=6, seed=3, setup=ODD), tmp_path)
    names = browser.run('[...document.querySelectorAll("#sliders label")].map((one) => one.textContent)')
    assert {"constructor", "__proto__", "toString"} <= set(names)
    for value in (3.0, 1.5):
        for name in ("constructor", "__proto__", "toString"):
            browser.run(f"bismut.change({names.index(name)}, {value})")
        browser.run("bismut.run(20).then(() => null)")
        same(browser, ran(browser, tmp_path)["result"])
    quiet(browser)


def test_schemes_side_by_side_are_those_of_python_on_one_path(browser, tmp_path):
    """Symplectic and Euler–Maruyama under one noise and random momenta: bits of each, before and after a slider; the script makes them again."""
    model = entry("ballistic-pendulum")
    setup = """import jax; jax.config.update("jax_enable_x64", True)
import bismut as bm
from bismut.gallery import entry
model = entry("ballistic-pendulum")
schemes = {"variational": bm.VariationalEuler(model.system()), "Euler–Maruyama": bm.EulerMaruyama(model.system())}
start = model.start(schemes["variational"])"""
    made: dict[str, Any] = {}
    exec(setup, made)
    page = bm.page(
        *(made["schemes"], made["start"]),
        **{"step": 0.1, "trajectories": 40, "seed": 5, "setup": setup, "picture": model.picture, "observe": {"kinetic": bm.kinetic_energy}},
    )
    opened(browser, page, tmp_path)
    assert browser.run("[...document.querySelectorAll('#key li')].map((one) => one.textContent)") == ["variational", "Euler–Maruyama"]
    assert browser.run("[...document.querySelectorAll('#stage .label')].map((one) => one.textContent)") == ["variational", "Euler–Maruyama"]
    browser.run("bismut.run(300).then(() => null)")
    run = {"step": 0.1, "trajectories": 40, "seed": 5, "arithmetic": "plain", "mode": "native", "progress": False}
    means = []
    for which, scheme in enumerate(made["schemes"].values()):
        result = bm.simulate(scheme, made["start"], **run, steps=300, every=300, observe={"kinetic": bm.kinetic_energy})
        same(browser, result, which)
        means.append(float(result["kinetic"].mean[-1]))
        assert abs(browser.run(f"bismut.plots[0].point.of[{which}].mean") - means[-1]) < 1e-12 * means[-1]
    assert means[1] > 1.5 * means[0], "Euler–Maruyama heats the disk"
    words = browser.run("bismut.plots[0].canvas.getAttribute('aria-label')")
    assert words.index("variational: ") < words.index("Euler–Maruyama: ")
    place = [control["name"] for control in page.program["controls"]].index("friction")
    browser.run(f'{{ const one = document.getElementById("slider-{place}"); one.value = 0.02; one.dispatchEvent(new Event("input")); }}')
    browser.run("bismut.run(50).then(() => null)")
    again = ran(browser, tmp_path)
    for which, name in enumerate(made["schemes"]):
        same(browser, again["results"][name], which)
    quiet(browser)


def test_the_page_of_a_run_file_and_its_script_follow_its_path(browser, tmp_path, monkeypatch):
    """From the command line, with coloured noise, which the script makes again; and with one that ends, where the page stops."""
    monkeypatch.chdir(tmp_path)
    ours = "name = 'OrnsteinUhlenbeck'\ncorrelation_time = 0.3"
    ends = "name = 'FractionalBrownian'\nhurst = 0.7\nsteps = 64"
    for path, steps in ((ours, 90), (ends, 64)):
        Path("run.toml").write_text(f"seed = 4\nsteps = 60\ntrajectories = 6\n[system]\nname = 'kubo-oscillator'\n[path]\n{path}\n")
        written = CliRunner().invoke(app, ["page", "run.toml", "--trajectories", "6", "--html", "page.html"])
        assert written.exit_code == 0, written.stderr
        Path("run.toml").unlink()  # the script needs no file
        reopened(browser, tmp_path / "page.html")
        browser.run("bismut.run(40).then(() => null)")
        browser.run("bismut.run(50).then(() => null)")
        assert browser.run("bismut.state().k") == steps
        same(browser, ran(browser, tmp_path)["result"])
        said = browser.run('document.getElementById("failed").textContent')
        assert said == ("" if steps == 90 else "The path of the noise ends here, at step 64.")
        quiet(browser)


@pytest.mark.parametrize("words", ["heavy-top --set weight=2.5 --temperature 0.7 --rate 1 --seed 9", "my_model.py:system"])
def test_the_script_of_a_page_from_the_command_line_makes_the_same_bits(words, browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    invoke = lambda *arguments: CliRunner().invoke(app, [*arguments])
    if words.startswith("my_model"):
        assert invoke("new", "my_model.py").exit_code == 0
    written = invoke("page", *words.split(), "--trajectories", "5", "--html", "page.html")
    assert written.exit_code == 0, written.stderr
    reopened(browser, tmp_path / "page.html")
    browser.run("bismut.run(70).then(() => null)")
    same(browser, ran(browser, tmp_path)["result"])
    quiet(browser)


def test_every_kind_of_plot_shows_what_numpy_finds(browser, tmp_path):
    """Mean, spread and error over trajectories, the histogram with its bins, and the drift of the worst trajectory; restarts draw as well."""
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.25 * jnp.sum(q**4) + q[0] * q[1]), temperature=0.6, friction=0.4)
    start = scheme.start(jnp.array([1.0, -0.3]), temperature=0.6)
    page = bm.page(scheme, start, step=0.05, trajectories=64, seed=3, observe={"q": lambda s: s.q, "energy": bm.energy}, title="plots")
    opened(browser, page, tmp_path)
    for _ in range(30):
        browser.run("bismut.run(4).then(() => null)")
    first, now = (np.array(browser.run(f"bismut.plots[0].{what}.map((one) => [...one])")) for what in ("first", "now"))
    assert first.shape == now.shape == (2, 64)
    found = browser.run("bismut.plots[0].point.of")
    for component, one in zip(now, found, strict=True):
        expected = {"n": 64, "mean": component.mean(), "spread": component.std(ddof=1), "error": component.std(ddof=1) / 8}
        assert all(np.isclose(one[key], value, rtol=1e-12) for key, value in expected.items())
    np.testing.assert_allclose(browser.run("bismut.plots[0].point.drift"), np.abs(now - first).max(1), rtol=1e-12)
    assert drawn_of(browser, 0, "time") > 0.02
    # Dark within the error of the mean, light within the spread, and nothing beyond it.
    shades = browser.run("""(() => {
        const plot = bismut.plots[1], ratio = devicePixelRatio;
        plot.draw();
        const one = plot.point.of[0], {X, Y} = plot.scales, pen = plot.canvas.getContext("2d"), x = Math.round(X(plot.t - 0.02) * ratio);
        const at = (share) => pen.getImageData(x, Math.round(Y(one.mean + share) * ratio), 1, 1).data[3];
        return [at(0.5 * one.error), at(-0.6 * one.error), at(0.6 * one.spread), at(-0.6 * one.spread), at(1.1 * one.spread)]; })()""")
    assert min(shades[:2]) > max(shades[2:4]) > min(shades[2:4]) - 1 > 0
    assert shades[4] == 0
    choose(browser, 0, "histogram")
    bins = browser.run("bismut.plots[0].bins()")
    edges = np.linspace(bins["low"], bins["high"], bins["bins"] + 1)
    assert bins["bins"] == 8
    assert bins["low"] < now.min() < now.max() < bins["high"]
    for component, heights in zip(now, bins["heights"], strict=True):
        np.testing.assert_allclose(heights, np.histogram(component, edges, density=True)[0], rtol=1e-9)
    assert drawn_of(browser, 0, "histogram") > 0.02
    choose(browser, 0, "drift")
    assert browser.run("bismut.plots[0].output.textContent") == "drift " + f"{np.abs(now - first).max():.3g}"
    assert drawn_of(browser, 0, "drift") > 0.005
    for kind in ("time", "histogram", "drift"):  # before anything has come, after a restart, and where only one time is known
        choose(browser, 0, kind)
        browser.run("{ const plot = bismut.plots[0]; plot.clear(); plot.draw(); }")
        browser.run("bismut.restart().then(() => null)")
        assert browser.run("bismut.plots[0].history.length") == 1
        assert drawn_of(browser, 0, kind) > 0.0001
    quiet(browser)


def test_few_trajectories_have_a_histogram_over_times(browser, tmp_path):
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.25 * jnp.sum(q**4)))
    page = bm.page(scheme, scheme.start([1.0], velocity=[0.2]), step=0.05, observe={"q": lambda s: s.q[0]})
    opened(browser, page, tmp_path)
    for _ in range(40):
        browser.run("bismut.run(3).then(() => null)")
    choose(browser, 0, "histogram")
    bins, values = browser.run("bismut.plots[0].bins()"), browser.run("bismut.plots[0].points().map(({of}) => of[0].mean)")
    assert len(values) == 41
    assert not bins["many"]
    edges = np.linspace(bins["low"], bins["high"], bins["bins"] + 1)
    np.testing.assert_allclose(bins["heights"][0], np.histogram(values, edges, density=True)[0], rtol=1e-9)
    quiet(browser)


def choose(browser: Browser, which: int, kind: str) -> None:
    browser.run(
        f'{{ const one = document.querySelectorAll(".plot select")[{which}]; one.value = "{kind}"; one.dispatchEvent(new Event("change")); }}'
    )
    assert kind in browser.run(f"bismut.plots[{which}].kind")


def drawn_of(browser: Browser, which: int, kind: str) -> float:
    """The share of the pixels of a plot that have a colour of its curves, and not the grey of its axes."""
    assert browser.run(f"bismut.plots[{which}].kind") == kind
    return browser.run(
        f"""(() => {{ const plot = bismut.plots[{which}];
        plot.draw();
        const {{canvas}} = plot, {{data}} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) {{
          const shade = [data[i], data[i + 1], data[i + 2]];
          count += data[i + 3] > 20 && Math.max(...shade) - Math.min(...shade) > 60;
        }}
        return count / (data.length / 4); }})()"""
    )


def test_random_momenta_and_their_seed_are_those_of_python(browser, tmp_path):
    """The start is drawn in the browser, anew for every seed, with the parameters as they are."""
    scheme = bm.Langevin(bm.mechanical(bm.SO3(), mass=jnp.array([1.0, 2.0, 3.0]), potential=lambda R: -R[2, 2]), temperature=1.0, friction=0.5)
    start = scheme.start(jnp.eye(3), temperature=1.0)
    page = bm.page(scheme, start, step=0.05, trajectories=10, seed=2**40 + 5, controls={"temperature": (0.1, 4)})
    opened(browser, page, tmp_path)
    for seed, kT in ((2**40 + 5, 1.0), (3, 2.5)):
        fields(browser, seed=seed, number_0=kT)
        browser.run("bismut.run(30).then(() => null)")
        hot = bm.with_parameters(scheme, {"temperature": kT})
        run = {"step": 0.05, "steps": 30, "trajectories": 10, "seed": seed, "every": 30}
        same(browser, bm.simulate(hot, start, **run, arithmetic="plain", mode="native", progress=False))
    quiet(browser)


def test_a_trajectory_that_fails_is_said_with_its_step(browser, tmp_path):
    """q' = p, p' = q³ and random kicks: some leave for infinity, in finite time."""
    runaway = bm.mechanical(bm.Euclidean(1), potential=lambda q: -0.25 * jnp.sum(q**4), noise=lambda q: q)
    scheme = bm.Verlet(runaway)
    start = scheme.start(jnp.array([1.0]), velocity=jnp.array([0.0]))
    opened(browser, bm.page(scheme, start, step=0.05, trajectories=8, seed=1), tmp_path)
    browser.run("bismut.run(400).then(() => null)")
    result = bm.simulate(scheme, start, step=0.05, steps=400, trajectories=8, seed=1, arithmetic="plain", mode="native", progress=False)
    failures = result.outcome.failures
    assert failures
    first = min(failure.step for failure in failures)
    said = browser.run('document.getElementById("failed").textContent')
    assert said.startswith(f"{len(failures)} of 8 trajectories failed")
    assert f"at step {first}." in said
    quiet(browser)


def test_memory_that_is_not_there_is_said_and_fewer_trajectories_run(browser, tmp_path):
    """What comes of a run that could not be laid out is nothing, also in the script; the next one is as it should be."""
    text, grows = top().html, "this.memory.grow("
    assert text.count(grows) == 1
    limited = text.replace(grows, "(this.top > 1e6 ? new WebAssembly.Memory({ initial: 1, maximum: 1 }) : this.memory).grow(")
    (tmp_path / "page.html").write_text(limited, encoding="utf-8")
    reopened(browser, tmp_path / "page.html")
    browser.run("bismut.run(5).then(() => null)")
    fields(browser, trajectories=9000)
    box = lambda: browser.run('[document.getElementById("trouble").style.display, document.getElementById("trouble").textContent]')
    shown, said = box()
    assert shown == "grid"
    assert said.startswith("This browser has no memory for that many trajectories")
    assert "needs a browser" not in said
    browser.run("Promise.all([bismut.run(5), bismut.change(0, 1.5)]).then(() => null)")
    assert browser.run("bismut.state().k") == 0
    assert "No step was made yet" in browser.run("bismut.script()")
    fields(browser, trajectories=3)
    assert box()[0] == "none"
    browser.run("bismut.run(10).then(() => null)")
    same(browser, ran(browser, tmp_path)["result"])
    assert all("memory" in error.lower() for error in browser.errors)


def test_names_stay_text_and_nothing_is_asked_of_the_network(browser, tmp_path):
    evil = "<img src=https://example.org/x onerror=alert(1)></script><b>"
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: parameters[evil] * jnp.sum(q**2), parameters={evil: 1.0})
    scheme = bm.Verlet(system)
    page = bm.page(scheme, scheme.start([1.0], velocity=[0.0]), step=0.1, observe={evil: lambda s: s.q[0]}, title=evil, setup=f"# {evil}")
    opened(browser, page, tmp_path)
    assert browser.run('document.querySelector("h1").textContent') == evil
    assert browser.run('document.querySelector("#sliders label").textContent') == evil
    assert browser.run('document.querySelector(".plot b").textContent') == evil
    assert browser.run('document.querySelectorAll("img, #side b b, script[src]").length') == 0
    browser.run("bismut.run(3).then(() => null)")
    assert evil in browser.run("bismut.script()")
    quiet(browser)


def test_everything_has_a_name_and_keys_work(browser, tmp_path):
    opened(browser, top(), tmp_path)
    unnamed = browser.run("""[...document.querySelectorAll("button, input, select, canvas")].filter((one) => !(one.getAttribute("aria-label")
        || one.textContent.trim() || one.labels?.length)).map((one) => one.outerHTML)""")
    assert unnamed == []
    press = lambda key: browser.run(f'document.body.dispatchEvent(new KeyboardEvent("keydown", {{key: "{key}", bubbles: true}}))')
    settle = "new Promise((done) => setTimeout(done, 300)).then(() => bismut.state().k)"
    press("ArrowRight")
    assert browser.run(settle) == 1
    press("r")
    assert browser.run(settle) == 0
    press(" ")
    browser.run("new Promise((done) => { const look = () => bismut.state().k > 2 ? done() : setTimeout(look, 20); look(); })")
    assert browser.run('document.getElementById("play").getAttribute("aria-label")') == "pause"
    press(" ")
    arrow = 'const one = document.getElementById("slider-0"); one.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));'
    value = browser.run("bismut.state().values[0]")
    browser.run(f"{{ {arrow} }}")
    assert browser.run("bismut.state().values[0]") > value
    live = browser.run('[...document.querySelectorAll("output")].filter((one) => one.getAttribute("aria-live") != "off").length')
    assert live == 0, "what is rewritten all the time would be read out all the time"
    quiet(browser)


@pytest.mark.parametrize("kind", ["running", "recorded"])
def test_the_view_is_turned_and_zoomed_by_keys(kind, browser, tmp_path):
    """Where the canvas has the focus, to which a tab key leads; the page itself, whose arrow makes a step, does not see them."""
    model = entry("heavy-top")
    made = top() if kind == "running" else bm.view(model.trial(steps=5).trajectory, system=model)
    reopened(browser, made.save(tmp_path / "page.html"))
    assert made._repr_html_().startswith('<iframe title="')
    assert browser.run('document.querySelector("#stage canvas").tabIndex') == 0
    label = browser.run('document.querySelector("#stage canvas").getAttribute("aria-label")')
    assert "arrow keys" in label
    assert "plus and minus" in label
    browser.run('document.querySelector("#stage canvas").focus()')
    now = lambda: np.asarray(Image.open(browser.picture(tmp_path / "seen.png")).convert("RGB"), float)[:-60]
    pictures = [now()]
    for key, code in (("ArrowRight", 39), ("ArrowDown", 40), ("+", 187)):
        for _ in range(3):
            for what in ("keyDown", "keyUp"):
                browser.ask("Input.dispatchKeyEvent", type=what, key=key, windowsVirtualKeyCode=code)
        browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        pictures.append(now())
        assert (np.abs(pictures[-1] - pictures[-2]).max(-1) > 40).mean() > 0.001, f"{key} did nothing"
    assert browser.run("bismut.state ? bismut.state().k : bismut.frame()") == 0
    quiet(browser)


@pytest.mark.parametrize("wide", [320, 390, 1280])
def test_narrow_screens_hold_everything(wide, browser, tmp_path):
    browser.ask("Emulation.setDeviceMetricsOverride", width=wide, height=720, deviceScaleFactor=1, mobile=False)
    opened(browser, top(), tmp_path)
    browser.run("bismut.draw(9).then(() => null)")
    over = """[...document.querySelectorAll("body, #bar *, #side *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
        .map((one) => one.outerHTML.slice(0, 80))"""
    assert browser.run(over) == []
    assert browser.run('document.getElementById("stage").clientHeight') > 150
    crossing = """(() => {
        const all = [...document.getElementById("bar").children].map((one) => one.getBoundingClientRect()).filter((r) => r.width && r.height);
        const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
        return all.some((a, i) => all.slice(i + 1).some((b) => over(a, b))); })()"""
    assert not browser.run(crossing)
    browser.ask("Emulation.clearDeviceMetricsOverride")
    quiet(browser)


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(browser, tmp_path):
    """Without rights of the page around it, the frame compiles its program and draws its bodies."""
    (tmp_path / "outer.html").write_text(f"<!doctype html><meta charset=utf-8>{top()._repr_html_()}")
    browser.errors.clear()
    browser.requests.clear()
    browser.ask("Page.navigate", url=(tmp_path / "outer.html").absolute().as_uri())
    for _ in range(120):
        browser.run("new Promise((done) => setTimeout(done, 500))")
        seen = np.asarray(Image.open(browser.picture(tmp_path / "seen.png")).convert("RGB"), int)
        if ((seen[..., 2] - seen[..., 0] > 60).mean()) > 0.01:  # the top is blue
            break
    else:
        pytest.fail("no body was drawn within a minute")
    quiet(browser)
