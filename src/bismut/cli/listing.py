"""`bismut list`: the gallery, and whatever else is registered."""

from typing import Annotated, Any

import typer

from bismut.cli.group import command, completion, print_json
from bismut.registry import GALLERY, REGISTRIES


@command("what is in the gallery, and everything else that has a name", "list")
def list_registered(
    kind: Annotated[str, typer.Argument(metavar="[KIND]", help=", ".join(REGISTRIES), autocompletion=completion(lambda: REGISTRIES))] = GALLERY.group,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
) -> None:
    """The gallery: name and first line of every system. Of another KIND: what run files and options can name, and which package it is from.

    \b
    bismut list
    bismut list schemes
    bismut list --json
    """
    from bismut.errors import BismutError, nearest

    if kind not in REGISTRIES:
        raise BismutError(f"There is nothing called {kind!r} to list. {nearest(kind, REGISTRIES)}")
    registry = REGISTRIES[kind]
    rows = [{"name": name, "title": _title(thing), "package": registry.origin_of(name)} for name, thing in registry.items()]
    if as_json:
        print_json([{key: value for key, value in row.items() if value or key != "package"} for row in rows])
        return
    for row in rows:
        package = f"  ({row['package']})" if row["package"] else ""
        print(f"{row['name']:27} {row['title']}{package}")
    if registry is GALLERY:
        print("\n`bismut show NAME` says more; `bismut run NAME` runs one.")


def _title(thing: Any) -> str:
    """The first line of what something says of itself."""
    texts = (getattr(thing, name, None) for name in ("title", "words", "description", "__doc__"))
    return next((text.strip().splitlines()[0] for text in texts if isinstance(text, str) and text.strip()), "")
