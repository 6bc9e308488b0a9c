"""`bismut verify RUN --data`: whether a run folder holds what was written."""

from typing import Annotated

import typer

from bismut.cli.group import FAILED, print_json
from bismut.cli.resume import AsJson, RunFolder


def verify(
    run: RunFolder, data: Annotated[bool, typer.Option("--data", help="read everything that was committed")] = False, as_json: AsJson = False
) -> None:
    """Compare every committed file of a run with its checksum, and list what is complete, partial and corrupt. Exit code 1 if something is corrupt.

    \b
    bismut verify output/heavy-top --data
    """
    from bismut.errors import BismutError

    if not data:
        raise BismutError(f"What is to be verified? `bismut verify {run} --data` reads everything that was committed.")
    tell_data(run, as_json)


def tell_data(run: RunFolder, as_json: bool) -> None:
    """What of a run is complete, partial and corrupt."""
    from dataclasses import asdict

    from bismut.store import verify_data

    report = verify_data(run)
    if as_json:
        print_json(asdict(report) | {"ok": report.ok})
    else:
        print(report if report.ok else f"{report}\n`bismut repair {run}` recomputes what is corrupt.")
    if not report.ok:
        raise typer.Exit(FAILED)
