"""CSV, text: a table for each observer. Numbers have all digits; NaN is an empty cell."""

from pathlib import Path

from bismut.sharing.formats import Format, TableSource
from bismut.sharing.tables import write_tables


def write(source: TableSource, place: Path) -> list[Path]:
    return write_tables(source, place, ".csv", lambda table, file: table.to_csv(file, index=False))


FORMAT = Format("csv", (".csv",), "tables as text, one for each observer: spreadsheets, pandas, R", False, write, folder=True)
