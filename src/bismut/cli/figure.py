"""`bismut figure NAME`: one command for every figure of the catalogue."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli.group import command, figure_names, print_json

_WIDE = 160  # columns of a pipe or a file, which have no width of their own


@command("the paper's figures and ours")
def figure(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="a figure, or `all`; without it the figures are listed", autocompletion=figure_names)
    ] = "",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="folder for picture, data and caption")] = Path("output"),
    form: Annotated[str, typer.Option("--format", metavar="NAME", help="png, pdf or svg")] = "png",
    dark: Annotated[bool, typer.Option("--dark", help="on a dark background, for screens and slides")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="smaller experiments, in seconds instead of minutes")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="table, caption and files as JSON; without NAME the titles")] = False,
) -> None:
    """Draw a figure, with its table, its data (CSV) and a caption that names all parameters.

    \b
    bismut figure                                   what there is
    bismut figure ballistic-pendulum --quick
    bismut figure all --format pdf --out pictures
    bismut figure convergence --quick --json
    """
    from bismut.errors import DomainError
    from bismut.figures import FORMATS, figures
    from bismut.figures import figure as chosen
    from bismut.figures.style import check_installed

    if not name:
        if as_json:
            print_json([{"name": one.name, "title": one.title} for one in figures().values()])
        for one in () if as_json else figures().values():
            print(f"{one.name:22} {one.title}")
        return
    if form not in FORMATS:
        raise DomainError(f"--format must be one of {', '.join(FORMATS)}, got {form!r}.")
    check_installed()
    wanted = list(figures().values()) if name == "all" else [chosen(name)]
    if as_json:
        print_json([_as_json(one, out, form, quick, dark) for one in wanted])
    for one in () if as_json else wanted:
        _draw(one, out, form, quick, dark)


def _as_json(one: Any, out: Path, form: str, quick: bool, dark: bool) -> dict[str, Any]:
    clock = time.perf_counter()
    data = one.run(quick, lambda text: None)
    files = one.save(data, out, form, dark)
    table = one.table(data)
    return {
        "name": one.name,
        "title": one.title,
        "table": {"title": table.title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]},
        "caption": one.caption(data),
        "files": files._asdict(),
        "seconds": round(time.perf_counter() - clock, 3),
    }


def _draw(one: Any, out: Path, form: str, quick: bool, dark: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    clock = time.perf_counter()
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, _WIDE))
    with Console(stderr=True).status(f"{one.name}: starting") as status:
        data = one.run(quick, lambda text: status.update(f"{one.name}: {text}"))
        files = one.save(data, out, form, dark)
    numbers = one.table(data)
    table = Table(title=numbers.title, title_justify="left", box=box.SIMPLE_HEAD)
    for index, column in enumerate(numbers.columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    for row in numbers.rows:
        table.add_row(*map(str, row))
    console.print(f"[bold]{one.title}[/bold]")
    console.print(table)
    console.print(one.caption(data), markup=False, highlight=False)
    console.print(
        f"picture {files.picture}\ndata    {files.data}\ncaption {files.words}\n{time.perf_counter() - clock:.0f} s\n",
        soft_wrap=True,
        highlight=False,
    )
