"""How our pictures look: Okabe and Ito's colours, which remain apart for every kind of colour vision, and fonts that stay readable when halved."""

from contextlib import contextmanager
from typing import Any

from bismut.errors import BismutError

BLACK, BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, YELLOW = (
    "#000000",
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#E69F00",
    "#56B4E9",
    "#CC79A7",
    "#F0E442",
)
# One colour and one dash for each method in every figure.
METHODS = {
    "SVI": ("variational (SVI)", BLUE, "-"),
    "VI1": ("variational Euler", BLUE, "-"),
    "Verlet": ("Verlet", SKY, "-"),
    "BAOAB": ("Langevin BAOAB (bismut)", BLUE, "-"),
    "EEM": ("explicit Euler–Maruyama", VERMILION, "--"),
    "IEM": ("implicit Euler–Maruyama", GREEN, "-."),
    "RK4": ("Runge–Kutta 4", VERMILION, "--"),
}

_SETTINGS: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 10.5,
    "legend.framealpha": 0.9,
    "figure.titlesize": 15,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "lines.linewidth": 1.7,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "bismut",
    "pdf.fonttype": 42,
}


def check_installed() -> None:
    """Refuse to draw without matplotlib, before anything is computed for the picture."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as problem:
        raise BismutError(
            "Pictures need matplotlib, which is not installed here: pip install 'bismut[figures]', or pip install matplotlib."
        ) from problem


@contextmanager
def styled():
    """matplotlib.pyplot with our settings and a backend that needs no screen."""
    check_installed()
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        matplotlib.use("agg", force=True)
        import matplotlib.pyplot as plt

        yield plt


def name_of(method: str) -> str:
    return METHODS[method][0]


def survivors(failed: int, trajectories: int) -> str:
    """A mark behind the name of a mean over those trajectories that did not fail; empty if none did."""
    return f" ⚠ {failed} of {trajectories} failed" if failed else ""


def look(method: str) -> dict[str, str]:
    """Colour and dash of a method, for `plot`."""
    _, colour, dash = METHODS[method]
    return {"color": colour, "linestyle": dash}
