"""One interface for every figure: a picture, the data behind it, a table and a caption."""

import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

from bismut.cli.main import app
from bismut.errors import BismutError
from bismut.figures import Figure, FigureTable, as_text, figure, figures
from bismut.figures.style import styled
from bismut.figures.symplecticity import area
from bismut.figures.underwater_vehicle import crossings

WANTED = {
    "ballistic-pendulum",
    "ballistic-transport",
    "convergence",
    "rigid-bodies",
    "spring-lattice",
    "symplecticity",
    "underwater-vehicle",
}


def test_the_catalogue_holds_every_figure():
    assert set(figures()) >= WANTED


def test_an_unknown_figure_suggests_the_nearest():
    with pytest.raises(BismutError, match="spring-lattice"):
        figure("spring-latice")


def sine() -> Figure:
    """A figure of no work."""

    def draw(data):
        import matplotlib.pyplot as plt

        drawn, axis = plt.subplots()
        axis.plot(*data)
        return drawn

    rows = lambda data: FigureTable("sine", ("x", "y"), list(zip(*data, strict=True)))
    x = np.linspace(0, 1, 5)
    return Figure("sine", "A sine", lambda quick, note: (x, np.sin(x)), draw, rows, rows, lambda data: "y = sin x")


@pytest.mark.parametrize("form", ["png", "pdf", "svg"])
def test_a_figure_leaves_picture_data_and_words(tmp_path, form):
    one = sine()
    files = one.save(one.run(True, print), tmp_path / "new", form)
    assert files.picture.suffix == f".{form}"
    assert files.picture.stat().st_size > 1000
    assert files.data.read_text().splitlines()[0] == "x,y"
    assert len(files.data.read_text().splitlines()) == 6
    assert "y = sin x" in files.words.read_text()


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(BismutError, match="png, pdf, svg"):
        sine().save((), tmp_path, "gif")


def test_a_table_is_aligned():
    assert as_text(FigureTable("t", ("a", "b"), [(1, 22), (333, 4)])) == "t\na    b\n1    22\n333  4"


def test_the_command_lists_the_figures():
    printed = CliRunner().invoke(app, ["figure"]).stdout
    assert all(name in printed for name in WANTED)


def test_a_crossing_is_found_where_the_line_crosses():
    # P₃ rises through zero a quarter of the way from the first row to the second; the fall after it does not count.
    p = np.zeros((3, 1, 6))
    p[:, 0, 5] = [-1.0, 3.0, -1.0]
    p[:, 0, 2], p[:, 0, 3] = [0.0, 4.0, 0.0], 1.0
    start, angle, turning, when = crossings(p, 0.5, 10.0)
    assert start.tolist() == [0]
    np.testing.assert_allclose([angle[0], turning[0], when[0]], [0.0, 1.0, 10.125])


def test_the_area_of_a_polygon():
    square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(area(np.stack([square, square[::-1] + 5])), [2.0, 2.0])


@pytest.mark.parametrize("own", ["svg", None])
def test_the_backend_of_the_session_stays_the_users(own):
    """Whether one was chosen or is still to be: pictures of ours need no screen, those of the user may."""
    before = dict.get(matplotlib.rcParams, "backend")
    try:
        dict.__setitem__(matplotlib.rcParams, "backend", matplotlib.rcsetup._auto_backend_sentinel)
        if own:
            matplotlib.use(own)
        chosen = dict.get(matplotlib.rcParams, "backend")
        with styled() as plt:
            assert matplotlib.get_backend() == "agg"
            plt.close(plt.figure())
        assert dict.get(matplotlib.rcParams, "backend") is chosen or dict.get(matplotlib.rcParams, "backend") == chosen
    finally:
        dict.__setitem__(matplotlib.rcParams, "backend", before)
