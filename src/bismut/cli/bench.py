"""`bismut bench`: the benchmarks of a checkout."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from bismut.cli.group import command


@command("measure speed")
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="fewer rounds, smaller studies")] = False,
    goals: Annotated[bool, typer.Option("--goals", help="only the table of goals")] = False,
    scaling: Annotated[bool, typer.Option("--scaling", help="only how cost scales")] = False,
    only: Annotated[str, typer.Option(metavar="WORD", help="only goals whose work contains a word, such as pendulum")] = "",
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="file for the numbers, as JSON")] = None,
) -> None:
    """Measure speed, next to other programs if they are installed. Needs a checkout of the source; `make bench` there also installs the others.

    \b
    bismut bench --quick --only pendulum
    """
    from bismut.errors import BismutError

    root = checkout()
    if root is None:
        raise BismutError(
            "The benchmarks are part of the source, not of the installed package, and there is no checkout here. "
            "Clone the repository, and in it run `make bench` (which installs the programs to compare with) or `bismut bench`."
        )
    arguments = [flag for flag, wanted in (("--quick", quick), ("--goals", goals), ("--scaling", scaling)) if wanted]
    arguments += ["--only", only] if only else []
    arguments += ["--json", str(json_file.absolute())] if json_file else []
    raise typer.Exit(subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=root, check=False).returncode)


def checkout() -> Path | None:
    """The source tree with benchmarks: around the folder one is in, or around the package itself."""
    here = Path.cwd()
    places = (here, *here.parents, *Path(__file__).parents[2:4])
    return next((place for place in places if (place / "benchmarks" / "__main__.py").is_file() and (place / "src" / "bismut").is_dir()), None)
