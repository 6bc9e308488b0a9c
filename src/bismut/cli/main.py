"""Commands of `bismut`. Each prints what a person wants to read; the work is done elsewhere."""

import inspect
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="A stochastic action in, a structure-preserving simulation out.", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)
figure_app = typer.Typer(help="Draw a figure, with its table and data.", no_args_is_help=True)
app.add_typer(figure_app, name="figure")


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


@figure_app.command("ballistic-pendulum")
def figure_ballistic_pendulum(
    out: Annotated[Path, typer.Option(help="folder for the picture and the data")] = Path("output"),
    trajectories: Annotated[int, typer.Option(help="trajectories per curve", min=2)] = 20_000,
    quick: Annotated[bool, typer.Option("--quick", help="a tenth of the trajectories")] = False,
) -> None:
    """Temperature of the ballistic pendulum: variational against explicit and implicit Euler–Maruyama (figure 3 of the paper)."""
    import csv

    from rich.console import Console
    from rich.table import Table

    from bismut.figures import ballistic_pendulum as figure

    console = Console()
    count = max(trajectories // 10, 2) if quick else trajectories
    with Console(stderr=True).status("starting") as status:
        curves = figure.experiment(count, note=status.update)
    table = Table(title=f"Mean kinetic energy / kT, {count} trajectories, two standard errors ± {2 * curves[0].stderr[-1]:.3f} for SVI")
    for column in ("method", "c", "h", "t = 10", "t = 100"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for curve in curves:
        table.add_row(figure.NAMES[curve.method], f"{curve.friction:g}", f"{curve.step:g}", f"{curve.near(10):.3f}", f"{curve.near(100):.3f}")
    console.print(table)
    picture = figure.draw(curves, out / "ballistic-pendulum.png", count)
    data = out / "ballistic-pendulum.csv"
    with data.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["method", "friction", "step", "time", "kinetic_over_kT", "stderr"])
        for curve in curves:
            rows.writerows([curve.method, curve.friction, curve.step, *point] for point in zip(curve.times, curve.mean, curve.stderr, strict=True))
    console.print(f"picture {picture}\ndata    {data}", soft_wrap=True)
