"""`bismut list`: the gallery."""

from typing import Annotated

import typer

from bismut.cli.group import print_json


def list_systems(as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False) -> None:
    """The gallery: name and first line of every system.

    \b
    bismut list
    bismut list --json
    """
    from bismut.gallery import entries

    found = {name: entry.title for name, entry in entries().items()}
    if as_json:
        print_json([{"name": name, "title": title} for name, title in found.items()])
        return
    for name, title in found.items():
        print(f"{name:27} {title}")
    print("\n`bismut show NAME` says more; `bismut run NAME` runs one.")
