"""The site before it is built: every page has its place in the sidebar, links are rewritten to where pages go, and a broken link would be seen."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(name: str):
    found = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


pages, links = script("pages"), script("links")


def test_every_page_is_listed_once_and_every_listed_page_is_there():
    listed = [path for paths in pages.listed((ROOT / "docs" / "README.md").read_text()).values() for path in paths]
    assert len(set(listed)) == len(listed)
    assert set(listed) == set(pages.pages()) - {"README.md", "docs/README.md"}


def anchors(text: str) -> set[str]:
    """Parts of a page, as code hosts and the site name them."""
    plain = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", plain, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([\w-]+)">', plain))


def test_parts_of_pages_that_are_linked_to_are_there():
    wrong, seen = [], 0
    for path in pages.pages():
        if not path.endswith(".md"):
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        for _, _, target, part in pages.LINK.findall("".join(pages.CODE.split(text)[::2])):
            if part and "://" not in target:
                there = ROOT / path if not target else (ROOT / path).parent / target
                seen += 1
                if part[1:] not in anchors(there.read_text(encoding="utf-8")):
                    wrong.append(f"{path}: {target}{part}")
    assert seen > 100
    assert not wrong


@pytest.mark.parametrize(
    ("path", "text", "becomes"),
    [
        ("README.md", "[a](docs/api.md#class-SO3)", "[a](api.md#class-so3)"),
        ("docs/tutorial/2-noise.md", "[a](../../README.md)", "[a](../index.md)"),
        ("docs/tutorial/2-noise.md", "![a](../pictures/noise.png)", "![a](../pictures/noise.png)"),
        ("docs/api.md", "[source](../src/bismut/errors.py)", "{source}`source <src/bismut/errors.py>`"),
        ("docs/api.md", "[`f`](https://example.org/a#b)", "[`f`](https://example.org/a#b)"),
        ("docs/api.md", "```py\n[a](no.md)\n```", "```py\n[a](no.md)\n```"),
        ("docs/api.md", '<a id="class-SO3"></a>', "(class-so3)="),
    ],
)
def test_links_lead_to_where_pages_go(path, text, becomes):
    assert pages.rewritten(text, path, pages.pages(), set()) == becomes


def test_a_link_to_nowhere_ends_the_build():
    with pytest.raises(SystemExit, match=r"docs/api\.md links to nowhere\.md"):
        pages.rewritten("[a](nowhere.md)", "docs/api.md", pages.pages(), set())


def test_broken_links_of_a_built_site_are_seen(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a><img src="https://x.org/p.png">')
    (tmp_path / "b.html").write_text('<p id="there"><a href="../out.html">4</a><a href="http://nohost">5</a><a href="#">6</a><a href="a.html">7</a>')
    assert links.broken(tmp_path) == [
        "a.html: b.html#gone: the page has no such part",
        "a.html: c.html: is not there",
        "b.html: ../out.html: leads out of the site",
        "b.html: http://nohost: no whole address",
    ]


def test_a_link_to_a_program_of_a_page_that_runs_becomes_the_page():
    """In Markdown it leads to the program; in the site the page is there, from wherever it is linked, and every program is linked somewhere."""
    linked: set[str] = set()
    text = pages.rewritten("a\n\n[Three & more](../live/pendulum.py)\n\nb", "docs/tutorial/1-a-pendulum.md", pages.pages(), linked)
    assert '<iframe class="view" src="../view/live-pendulum.html" title="Three &amp; more" loading="lazy"></iframe>' in text
    assert "{source}`Three & more <docs/live/pendulum.py>`" in text
    assert linked == {"docs/live/pendulum.py"}
    assert "iframe" not in pages.rewritten("see [this](live/pendulum.py) too", "docs/figures.md", pages.pages(), linked)
    with pytest.raises(SystemExit, match="nowhere"):
        pages.rewritten("[a](live/nowhere.py)", "docs/figures.md", pages.pages(), set())
    texts = [pages.rewritten((pages.ROOT / path).read_text(), path, pages.pages(), set()) for path in pages.pages() if path.endswith(".md")]
    for file in pages.live():
        assert any(f"live-{file.stem}.html" in text for text in texts), file
