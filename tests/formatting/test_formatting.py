"""What a user evaluates says in a line what it is, and in a notebook in a table, where nothing a user wrote is taken for HTML."""

from html.parser import HTMLParser

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles import Report
from bismut.ensembles.plan import Plan
from bismut.ensembles.result import Failure, Outcome, Provenance, Result
from bismut.errors import nearest
from bismut.findings import Finding, Verdict
from bismut.findings import Report as Findings
from bismut.formatting import PlainText, brief, function_name, per_second, with_error
from bismut.gallery import entry

TRICK = "<script>alert(1)</script>"
top = bm.System(
    bm.SO3(),
    lambda R, w: 0.5 * w @ w - R[2, 2],
    noise=lambda R: jnp.array([R[2, 2]]),
    symmetries={TRICK: bm.left_rotation((0.0, 0.0, 1.0))},
    parameters={TRICK: jnp.arange(200.0)},
)
line = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.sum(q**4))
step = bm.Verlet(line)
pair = bm.rigid_bodies(mass=np.ones(2), inertia=np.ones((2, 3)), potential=bm.dipoles((0.0, 0.0, 1.0)))
report = Report(TRICK, {"mean": (("time",), np.arange(500.0)), "below": ((), np.asarray(3))}, {"time": np.arange(500.0)}, TRICK)
how = Provenance("Verlet", "Euclidean(1)", "float64", 0.1, 10, 1, 2, 0.0, 0, 1, 0, False, "xla", 2, "None", {})
failed = Outcome(2, (Failure(1, 3, 0.3, 0.1),))
findings = Findings("Verlet", 0.1, (Finding(TRICK, 1e-16, 1e-12, Verdict.passed, TRICK),))

PAGES = {
    "space": (bm.Euclidean(3) * bm.SO3()) ** 4,
    "system": top,
    "bodies": pair,
    "scheme": bm.VariationalEuler(top),
    "bath": bm.Langevin(line, temperature=0.5, friction=1.0, splitting=bm.GLA(bm.Verlet)),
    "result": Result(np.arange(3.0), {TRICK: report}, None, failed, how),
    "report": report,
    "findings": findings,
    "plan": Plan(4, 10, 1, 4, 1, 2, "xla", 1664, 64, TRICK),
    "words": PlainText(f"one\n  {TRICK}"),
}
LINES = {
    "space": bm.SE3(),
    "product": PAGES["space"],
    "exp": bm.SO3("exp"),
    "system": line,
    "thermal": bm.thermalize(bm.mechanical(bm.Circle(), noise=lambda q: jnp.stack([q])), temperature=1.0),
    "scheme": bm.Midpoint(line, retraction="exp"),
    "adjoint": bm.VariationalEuler(line).adjoint(),
    "own": bm.Discrete(bm.Euclidean(1), lambda q0, q1, h, dW: jnp.sum((q1 - q0) ** 2) / (2 * h)),
    "splitting": bm.Metropolised(),
    "state": step.start(jnp.zeros((50, 1)), velocity=jnp.zeros(1)),
    "maxwell": step.start(jnp.zeros((50, 1)), temperature=0.5),
    "path": bm.Wiener(3, substeps=2).shift(7),
    "symmetry": bm.translations(),
    "body": bm.stack_bodies([bm.body(np.eye(3) + 0.1)] * 4),
    "energy": bm.energy,
    "momentum": bm.momentum("vertical"),
    "histogram": bm.histogram((bm.energy, lambda s: s.q[0]), range=((0, 1), (0, 1))),
    "section": bm.section(lambda s: s.p[0], at=bm.energy),
    "observer": bm.Observer(init=lambda s: 0.0, update=lambda m, s: m),
    "outcome": failed,
    "entry": entry("heavy-top"),
}


class Reader(HTMLParser):
    """Which tags a page has, and what it reads as."""

    def __init__(self, page: str):
        super().__init__()
        self.tags, self.words = set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.words += data + " "


@pytest.mark.parametrize("name", PAGES)
def test_a_page_holds_a_table_or_text_and_escapes_what_users_wrote(name):
    page = Reader(PAGES[name]._repr_html_())
    assert page.tags <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "pre"}
    assert page.words.strip()
    assert len(page.words) < 2500
    if name not in ("space", "bodies", "bath"):
        assert TRICK in page.words


@pytest.mark.parametrize("name", LINES)
def test_a_line_says_what_it_is_without_addresses_or_walls_of_numbers(name):
    said = repr(LINES[name])
    assert len(said) < 160
    assert "\n" not in said
    for ugly in ("0x", "<lambda>", "<function", "<class"):
        assert ugly not in said
    assert str(LINES[name])


def test_what_a_line_says():
    assert repr(bm.VariationalEuler(line)) == "VariationalEuler of System(Euclidean(1))"
    assert repr(bm.Wiener(3, substeps=2).shift(7)) == "Wiener(3, substeps=2).shift(7)"
    assert repr(bm.BAOAB) == "BAOAB"
    assert repr(bm.time_average(bm.energy)) == "TimeAverage(function=energy)"
    assert repr(failed) == "Outcome(1 of 2 trajectories failed and were left out from then on)"
    assert repr(bm.explain(step)).splitlines()[0] == "Verlet on Euclidean(1): 1 degree of freedom, 0 Wiener processes"


def test_numbers_are_shown_while_they_are_few():
    assert brief({"k": np.float64(0.5), "m": (np.arange(3), np.zeros((7, 2)))}) == "{k: 0.5, m: ([0, 1, 2], f64[7,2])}"
    assert function_name(lambda q: q) == "own function"
    assert function_name(jnp.sin) == "sin"


def test_what_is_traced_shows_itself_too():
    """A print within a compiled function must not ask for numbers that are not there."""
    said = []

    def look(k):
        path, there = bm.Wiener(3), top.with_parameters({TRICK: k * top.parameters[TRICK]})
        said.append(repr((jax.tree.map(lambda word: word + 0, path), there)))
        return k

    jax.make_jaxpr(look)(1.0)
    jax.make_jaxpr(lambda seed: said.append(repr(jax.tree.map(lambda word: word + seed, bm.Wiener(3)))) or seed)(jnp.uint32(1))
    assert "f64[200]" in said[0]
    assert said[1] == "Wiener(...)"


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (0.50123, 0.0031, "0.5012 ± 0.0031"),
        (12345.678, 23.4, "12346 ± 23"),
        (-0.5, 0.0999, "-0.50 ± 0.10"),
        (3.0, 0.0, "3 ± 0"),
        (1 / 3, 1e-17, "0.333333 ± 0"),
        (0.5, float("nan"), "0.5"),
        (float("nan"), 1.0, "nan"),
        (1.23456e9, 4e5, "(1.23456 ± 0.00040)e9"),
        (1e-9, 2.3e-11, "(1.000 ± 0.023)e-9"),
        (np.array([1.0, 2.0]), np.array([0.1, 0.02]), "[1.00 ± 0.10, 2.000 ± 0.020]"),
    ],
)
def test_a_mean_is_shown_with_two_digits_of_its_error(mean, error, text):
    assert with_error(mean, error) == text


@pytest.mark.parametrize(("rate", "words"), [(2.5e9, "2.5 G"), (1.234e7, "12.3 M"), (45_100.0, "45.1 k"), (812.0, "812"), (3.2, "3.2")])
def test_a_rate_has_a_unit_of_its_size(rate, words):
    assert per_second(rate) == f"{words} path-steps/s"


def test_only_a_close_name_is_offered():
    names = ["end_momenta", "energy", "Verlet", "histogram"]
    assert nearest("enrgy", names) == "Did you mean 'energy'?"
    assert nearest("verlet", names) == "Did you mean 'Verlet'?"
    assert "Did you mean" not in nearest("lennard_jones", names)
    assert nearest("lennard_jones", [str(n) for n in range(99)]) == "None of the 99 names that are known is close to it."
