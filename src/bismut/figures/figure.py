"""A figure: an experiment, a picture of it, a table, the data behind it, and a caption that names every parameter.

    run(quick, note) ──► data ──► draw(data) picture,  table(data) numbers to read,  records(data) all numbers,  caption(data) words

The command line knows nothing but this interface; a new figure is one file with a `FIGURE`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bismut.errors import DomainError

FORMATS = ("png", "pdf", "svg")
Note = Callable[[str], Any]


class FigureTable(NamedTuple):
    """Rows of words and numbers under named columns."""

    title: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


class FigureFiles(NamedTuple):
    """Where a figure was written."""

    picture: Path
    data: Path
    words: Path


@dataclass(frozen=True)
class Figure:
    """`run(quick, note)` does the work and says through `note` what it is at; the rest reads what it returns.

    table    the numbers a reader wants, few enough to print
    records  every number of the picture, as it goes into the CSV file
    caption  what is shown, with all parameters
    """

    name: str
    title: str
    run: Callable[[bool, Note], Any]
    draw: Callable[[Any], Any]
    table: Callable[[Any], FigureTable]
    records: Callable[[Any], FigureTable]
    caption: Callable[[Any], str]

    def save(self, data: Any, folder: Path, form: str = "png", dark: bool = False) -> FigureFiles:
        """Write picture, data (CSV) and caption with table (text) into a folder; on paper or in the dark."""
        if form not in FORMATS:
            raise DomainError(f"A figure is written as one of {', '.join(FORMATS)}, got {form!r}.")
        from bismut.figures.style import styled, write_picture

        folder.mkdir(parents=True, exist_ok=True)
        picture, file, words = folder / f"{self.name}.{form}", folder / f"{self.name}.csv", folder / f"{self.name}.txt"
        with styled(dark) as plt:
            drawn = self.draw(data)
            write_picture(drawn, picture, dpi=160)
            plt.close(drawn)
        records = self.records(data)
        with file.open("w", newline="", encoding="utf-8") as out:
            rows = csv.writer(out)
            rows.writerow(records.columns)
            rows.writerows(records.rows)
        words.write_text(f"{self.title}\n\n{self.caption(data)}\n\n{as_text(self.table(data))}\n", encoding="utf-8")
        return FigureFiles(picture, file, words)


def as_text(table: FigureTable) -> str:
    """The table with aligned columns."""
    rows = [[str(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([table.title, *lines])
