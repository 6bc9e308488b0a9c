"""Parquet: a table for each observer, with types, in columns; how the run was made is among the metadata, as `bismut`."""

import json
from pathlib import Path

from bismut.sharing.format import Format, Sheets, needed
from bismut.sharing.tables import written


def write(sheets: Sheets, place: Path) -> list[Path]:
    arrow, parquet = needed("pyarrow", "Parquet"), needed("pyarrow.parquet", "Parquet")
    run = json.dumps(sheets.run.run, default=str).encode()

    def one(table, file):
        made = arrow.Table.from_pandas(table, preserve_index=False)
        parquet.write_table(made.replace_schema_metadata({**(made.schema.metadata or {}), b"bismut": run}), file)

    return written(sheets, place, ".parquet", one)


FORMAT = Format("parquet", (".parquet", ".pq"), "tables in columns, one for each observer: pandas, polars, DuckDB, Spark", False, write, folder=True)
