"""The documentation site in a real browser, opened from the disk with the network off: it is styled, formulas have their letters, the search finds,
views move, and nothing complains on the console."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.pages.browser import Browser

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
pytestmark = pytest.mark.browser

WAITING = """new Promise((done, failed) => {{
  const end = Date.now() + 60000;
  const look = () => {{
    let found = false;
    try {{ found = {condition}; }} catch {{ /* not yet */ }}
    if (found) done(true); else if (Date.now() > end) failed(new Error("not in time")); else setTimeout(look, 50);
  }};
  look();
}})"""


@pytest.fixture(scope="module")
def browser():
    if not (SITE / "index.html").exists():
        pytest.fail("The site is not built. `make page-test` builds it, and so does `make docs`.")
    one = Browser()
    yield one
    one.close()


def opened(browser: Browser, page: str, condition: str = "document.readyState == 'complete'") -> None:
    browser.errors.clear()
    browser.requests.clear()
    file, _, asked = page.partition("?")
    browser.ask("Page.navigate", url=(SITE / file).absolute().as_uri() + (f"?{asked}" if asked else ""))
    wait(browser, f"location.pathname.endsWith({json.dumps('/' + file)}) && {condition}")


def wait(browser: Browser, condition: str) -> None:
    browser.run(WAITING.format(condition=condition))


def quiet(browser: Browser) -> None:
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "blob:", "data:"))] == []


def test_the_first_page_is_styled_and_leads_everywhere(browser):
    opened(browser, "index.html")
    assert browser.run("document.querySelector('h1').textContent").startswith("bismut")
    assert browser.run("getComputedStyle(document.querySelector('.sidebar-drawer')).display") != "none"
    assert browser.run("[...document.images].every((one) => one.complete && one.naturalWidth > 100)")
    leads = set(browser.run("[...document.querySelectorAll('.sidebar-tree a')].map((one) => one.getAttribute('href'))"))
    assert {"tutorial/1-a-pendulum.html", "notebooks/rigid-bodies.html", "gallery.html", "coming-from.html", "api.html", "performance.html"} <= leads
    quiet(browser)


def test_formulas_have_their_letters(browser):
    """A letter that no font has is drawn as the same box whatever it is: letters of our formulas differ from it, and from each other."""
    opened(browser, "variational-principle.html", "document.readyState == 'complete' && document.fonts.status == 'loaded'")
    assert "𝔊 = Σ S_d(q_k, q_{k+1})" in browser.run("document.body.innerText")
    browser.run("document.fonts.load('20px \"bismut mathematics\"', '𝔊')")
    drawn = browser.run(
        """(() => { const family = getComputedStyle(document.body).fontFamily, found = {};
        for (const letter of [..."𝔊⊖⊕∘⟨γ₁ℝ∂"].concat(["\\u{10FFFD}"])) {
          const canvas = Object.assign(document.createElement("canvas"), {width: 60, height: 60}), pen = canvas.getContext("2d");
          pen.font = `40px ${family}`; pen.fillText(letter, 5, 45); found[letter] = canvas.toDataURL(); }
        return found; })()"""
    )
    assert len(drawn) == 10
    assert len(set(drawn.values())) == 10
    quiet(browser)


@pytest.mark.parametrize(("asked", "wanted"), [("Langevin", "api.html"), ("OpenMM", "coming-from.html"), ("heavy top", "gallery/heavy-top.html")])
def test_the_search_finds(browser, asked, wanted):
    opened(browser, f"search.html?q={asked.replace(' ', '+')}", "document.querySelectorAll('#search-results li a').length > 0")
    wait(browser, f"[...document.querySelectorAll('#search-results li a')].some((one) => one.getAttribute('href').startsWith({json.dumps(wanted)}))")
    quiet(browser)


def test_a_view_of_the_gallery_moves(browser, tmp_path):
    view = "document.querySelector('iframe.view').contentWindow.bismut"
    opened(browser, "gallery/heavy-top.html", "document.querySelector('iframe.view') != null")
    page = browser.run("document.querySelector('iframe.view').src")
    browser.errors.clear()
    browser.open(Path(page.removeprefix("file://")))
    first = np.asarray(Image.open(browser.picture(tmp_path / "first.png")).convert("RGB"), float)
    browser.show(100)
    later = np.asarray(Image.open(browser.picture(tmp_path / "later.png")).convert("RGB"), float)
    assert (np.abs(first - later).max(-1) > 40).mean() > 0.001, f"nothing has moved in {view}"
    quiet(browser)


LIVE = [f"live-{file.stem}" for file in sorted((ROOT / "docs" / "live").glob("*.py"))]


@pytest.mark.parametrize("name", ["heavy-top-run", *LIVE])
def test_a_live_page_runs(name, browser):
    """As it lies on the site, where the program that draws is a file beside it: it makes steps, asked for and played, and complains of nothing."""
    browser.errors.clear()
    browser.requests.clear()
    browser.open(SITE / "view" / f"{name}.html")
    assert browser.run("document.querySelector('script[src=\"library.js\"]') != null && document.querySelector('#stage canvas') != null")
    assert any(url.endswith("/view/library.js") for url in browser.requests)
    browser.run("bismut.run(20).then(() => null)")
    assert browser.run("bismut.state().k") == 20
    assert browser.run("bismut.state().failures.count") == 0
    browser.run("bismut.play(true)")
    wait(browser, "bismut.state().k > 30")
    browser.run("bismut.play(false)")
    assert "bm.simulate(" in browser.run("bismut.script()")
    quiet(browser)


def test_there_are_as_many_live_pages_as_systems_and_programs():
    """Every entry of the gallery has one, and every program of docs/live."""
    pages = {file.stem for file in (SITE / "view").glob("*.html")}
    systems = {page.removesuffix("-run") for page in pages if page.endswith("-run")}
    assert systems == {page for page in pages if not page.endswith("-run") and not page.startswith("live-")}
    assert len(systems) >= 22
    assert set(LIVE) == {page for page in pages if page.startswith("live-")}
    assert len(LIVE) >= 4


def test_every_card_of_the_gallery_has_its_picture(browser):
    opened(browser, "gallery.html")
    browser.run("[...document.images].forEach((one) => { one.loading = 'eager'; })")
    wait(browser, "[...document.querySelectorAll('.card img')].every((one) => one.complete)")
    assert browser.run("[...document.querySelectorAll('.card img')].filter((one) => one.naturalWidth != 480).length") == 0
    assert browser.run("document.querySelectorAll('.card').length") >= 22
    quiet(browser)


def test_code_in_the_text_leads_to_the_api_and_to_jax(browser):
    opened(browser, "coming-from.html")
    leads = browser.run("[...document.querySelectorAll('a.named')].map((one) => one.getAttribute('href'))")
    assert "api.html#bm-simulate" in leads
    assert any(target.startswith("https://docs.jax.dev/") for target in leads)
    quiet(browser)


def test_no_page_is_wider_than_a_phone(browser):
    """What is wide, as tables and code, scrolls by itself."""
    browser.ask("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    for page in ("index.html", "performance.html", "coming-from.html", "api.html", "gallery.html", "notebooks/your-own-action.html"):
        opened(browser, page)
        assert browser.run("document.documentElement.scrollWidth") <= 400, page
    browser.ask("Emulation.clearDeviceMetricsOverride")
    quiet(browser)
