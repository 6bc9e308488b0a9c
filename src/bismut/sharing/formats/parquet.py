"""Parquet: a table for each observer, with types, in columns; the provenance of the run is among the metadata, as `bismut`."""

import json
from pathlib import Path

from bismut.sharing.formats import Format, TableSource, require
from bismut.sharing.tables import write_tables


def write(source: TableSource, place: Path) -> list[Path]:
    arrow, parquet = require("pyarrow", "Parquet"), require("pyarrow.parquet", "Parquet")
    run = json.dumps(source.run.run, default=str).encode()

    def one(table, file):
        columns = arrow.Table.from_pandas(table, preserve_index=False)
        parquet.write_table(columns.replace_schema_metadata({**(columns.schema.metadata or {}), b"bismut": run}), file)

    return write_tables(source, place, ".parquet", one)


FORMAT = Format("parquet", (".parquet", ".pq"), "tables in columns, one for each observer: pandas, polars, DuckDB, Spark", False, write, folder=True)
