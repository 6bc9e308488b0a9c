"""`bismut figure NAME`: one command for every figure of the catalogue."""

import time
from pathlib import Path
from typing import Annotated

import typer


def figure(
    name: Annotated[str, typer.Argument(help="a figure, or `all`; without a name the figures are listed")] = "",
    out: Annotated[Path, typer.Option(help="folder for picture, data and caption")] = Path("output"),
    form: Annotated[str, typer.Option("--format", help="png, pdf or svg")] = "png",
    quick: Annotated[bool, typer.Option("--quick", help="smaller experiments, in seconds instead of minutes")] = False,
) -> None:
    """Draw a figure, with its table, its data (CSV) and a caption that names all parameters."""
    from bismut.errors import DomainError
    from bismut.figures import FORMATS, figures
    from bismut.figures import figure as chosen

    if not name:
        for one in figures().values():
            print(f"{one.name:22} {one.title}")
        return
    if form not in FORMATS:
        raise DomainError(f"--format must be one of {', '.join(FORMATS)}, but {form!r} came.")
    for one in figures().values() if name == "all" else [chosen(name)]:
        _draw(one, out, form, quick)


def _draw(one, out: Path, form: str, quick: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console, clock = Console(), time.perf_counter()
    with Console(stderr=True).status(f"{one.name}: starting") as status:
        data = one.run(quick, lambda text: status.update(f"{one.name}: {text}"))
        files = one.save(data, out, form)
    found = one.table(data)
    table = Table(title=found.title, title_justify="left", box=box.SIMPLE_HEAD)
    for index, column in enumerate(found.columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    for row in found.rows:
        table.add_row(*map(str, row))
    console.print(f"[bold]{one.title}[/bold]")
    console.print(table)
    console.print(one.caption(data), markup=False, highlight=False)
    console.print(
        f"picture {files.picture}\ndata    {files.data}\ncaption {files.words}\n{time.perf_counter() - clock:.0f} s\n",
        soft_wrap=True,
        highlight=False,
    )
