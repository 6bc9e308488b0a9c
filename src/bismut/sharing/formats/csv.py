"""CSV, text: a table for each observer. Numbers have all digits; NaN is an empty cell."""

from pathlib import Path

from bismut.sharing.format import Format, Sheets
from bismut.sharing.tables import written


def write(sheets: Sheets, place: Path) -> list[Path]:
    return written(sheets, place, ".csv", lambda table, file: table.to_csv(file, index=False))


FORMAT = Format("csv", (".csv",), "tables as text, one for each observer: spreadsheets, pandas, R", False, write, folder=True)
