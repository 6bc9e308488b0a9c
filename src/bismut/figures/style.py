"""How our pictures look: colours of `bismut/palette.py`, on paper or in the dark, and fonts that stay readable when halved."""

from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from bismut.errors import BismutError
from bismut.palette import DARK, LIGHT, Palette
from bismut.store import write_file

# A name, a colour and a dash for each method in every figure.
METHODS = {
    "SVI": ("variational (SVI)", "blue", "-"),
    "VI1": ("variational Euler", "blue", "-"),
    "Verlet": ("Verlet", "sky", "-"),
    "BAOAB": ("Langevin BAOAB (bismut)", "blue", "-"),
    "EEM": ("explicit Euler–Maruyama", "vermilion", "--"),
    "IEM": ("implicit Euler–Maruyama", "sage", "-."),
    "RK4": ("Runge–Kutta 4", "vermilion", "--"),
}

_SETTINGS: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 10.5,
    "legend.framealpha": 0.85,
    "legend.handlelength": 3.2,  # a dash is to be recognised
    "figure.titlesize": 15,
    "axes.grid": True,
    "grid.alpha": 1.0,
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.limits": (-4, 5),
    "axes.formatter.use_mathtext": True,
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


def write_picture(figure: Any, file: str | Path, **options: Any) -> Path:
    """Write a figure of matplotlib, whole or not at all; its format is the ending of the file, PNG if it has none."""
    file = Path(file)
    file = file if file.suffix else file.with_name(f"{file.name}.png")
    picture = BytesIO()
    figure.savefig(picture, format=file.suffix[1:].lower(), **options)
    return write_file(file, picture.getvalue())


@contextmanager
def styled(dark: bool = False):
    """matplotlib.pyplot with our settings, on paper or in the dark, and a backend that needs no screen; the user's own are back afterwards."""
    check_installed()
    import matplotlib

    before = dict.get(matplotlib.rcParams, "backend")  # asked for as usual, a backend not yet chosen would be chosen now
    with matplotlib.rc_context(_SETTINGS | _coloured(DARK if dark else LIGHT)):
        matplotlib.use("agg", force=True)
        import matplotlib.pyplot as plt

        try:
            yield plt
        finally:
            if isinstance(before, str):
                matplotlib.use(before, force=False)
            else:  # still to be chosen, by the first figure of the user
                dict.__setitem__(matplotlib.rcParams, "backend", before)
                setattr(plt, "_backend_mod", None)  # noqa: B010


def _coloured(chosen: Palette) -> dict[Any, Any]:
    from cycler import cycler

    grounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    inks = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    settings = dict.fromkeys(grounds, chosen.ground) | dict.fromkeys(inks, chosen.ink)
    edges = {"axes.edgecolor": chosen.soft, "legend.edgecolor": chosen.rule, "grid.color": chosen.rule, "hatch.color": chosen.soft}
    return settings | edges | {"axes.prop_cycle": cycler(color=chosen.series)}


def palette() -> Palette:
    """The colours in force: those whose ground the settings of matplotlib have."""
    import matplotlib

    return DARK if matplotlib.rcParams["figure.facecolor"] == DARK.ground else LIGHT


def colour(name: str) -> str:
    """A colour of the palette in force, by its name."""
    return getattr(palette(), name)


def scale() -> Any:
    """The colours of numbers, from low to high, as a colormap."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("bismut", palette().scale)


def name_of(method: str) -> str:
    return METHODS[method][0]


def survivors(failed: int, trajectories: int) -> str:
    """A mark behind the name of a mean over those trajectories that did not fail; empty if none did."""
    return f" ⚠ {failed} of {trajectories} failed" if failed else ""


def look(method: str) -> dict[str, str]:
    """Colour and dash of a method, for `plot`."""
    _, name, dash = METHODS[method]
    return {"color": colour(name), "linestyle": dash}
