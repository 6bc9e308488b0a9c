"""Commands of `bismut`. Each prints what a person wants to read; the work is done elsewhere."""

import inspect
import sys
from typing import Annotated

import typer

from bismut.cli.figure import figure

app = typer.Typer(
    help="A stochastic action in, a structure-preserving simulation out.", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command("figure")(figure)


def main() -> None:
    """Set double precision, then run the command."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from bismut.errors import BismutError

    try:
        app()
    except BismutError as problem:
        print(f"bismut: {problem}", file=sys.stderr)
        sys.exit(2)


@app.command("list")
def list_systems() -> None:
    """The gallery: name and first line of every system."""
    from bismut.gallery import entries

    for name, entry in entries().items():
        print(f"{name:22} {entry.physics.splitlines()[0]}")


@app.command()
def show(name: Annotated[str, typer.Argument(help="a name from `bismut list`")]) -> None:
    """Physics, equations and parameters of a gallery system."""
    from bismut.gallery import entry

    found = entry(name)
    print(found.physics)
    print("\nParameters")
    for parameter in inspect.signature(found.build).parameters.values():
        print(f"  {parameter.name} = {parameter.default}")
