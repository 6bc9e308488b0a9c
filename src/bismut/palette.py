"""The colours of every picture and page: one set on paper, one in the dark.

    (L₁ + 0.05)/(L₂ + 0.05) ≥ 3      contrast of each colour with its ground (WCAG 2.2, 1.4.11)
    ΔE ≥ 23, |ΔL*| ≥ 6.5              of any two: for normal sight and without cones of any one kind; as grey

Hues were chosen first, so that a name means the same on both grounds; lightness was then spread evenly, the first three furthest apart, and the
rest searched for. Okabe and Ito's colours, used before, have ΔL* = 0.8 between orange and sky, which a grey printer merges, and a contrast of
2.2 on white. Dashes say the same a second time.
"""

from typing import NamedTuple


class Palette(NamedTuple):
    """A ground and what is legible on it. `series` are the colours of curves and bodies in their order; `scale` those of numbers, low to high."""

    ground: str
    ink: str
    soft: str
    rule: str
    alarm: str
    blue: str
    vermilion: str
    sage: str
    sky: str
    magenta: str
    ochre: str
    scale: tuple[str, ...]

    @property
    def series(self) -> tuple[str, ...]:
        return (self.blue, self.vermilion, self.sage, self.sky, self.magenta, self.ochre, self.ink)


LIGHT = Palette(
    ground="#ffffff",
    ink="#121212",
    soft="#686f7a",
    rule="#d8dce3",
    alarm="#b00020",
    blue="#1f37bd",
    vermilion="#c43e10",
    sage="#7e9b72",
    sky="#0385c7",
    magenta="#a6227c",
    ochre="#522b01",
    scale=("#440154", "#472e7c", "#39568c", "#287c8e", "#1fa088", "#4ac16d"),
)
DARK = Palette(
    ground="#14171d",
    ink="#f3f3f3",
    soft="#9aa3b2",
    rule="#333a46",
    alarm="#ff8a80",
    blue="#8188fb",
    vermilion="#d03523",
    sage="#a4c596",
    sky="#9dd9ff",
    magenta="#e72db0",
    ochre="#d99e1a",
    scale=("#375b8d", "#277e8e", "#1fa188", "#48c16e", "#9dd93b", "#fde725"),
)
NAMES = tuple(name for name in Palette._fields if name != "scale")
# On and off in line widths, as matplotlib takes them: one for each colour of a series.
DASHES = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 1.5)), (0, (9, 2, 1.5, 2, 1.5, 2)), (0, (3, 3)), (0, (12, 3)))
MARKS = ("o", "s", "^", "D", "v", "P", "X")
