"""`bismut check RUN.toml`: all mistakes of a run file, or what the run would take."""

from pathlib import Path
from typing import Annotated

import typer

from bismut.cli.group import WRONG_USE, command, print_json


@command("the mistakes in a run file, or what it would take")
def check(
    file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="a run file")],
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
) -> None:
    """List every mistake in a run file with its line; if there are none, report what the run would take.

    \b
    bismut run heavy-top --steps 20000 --write top.toml --dry-run
    bismut check top.toml
    """
    from dataclasses import asdict

    from bismut.cli.runs.prepare import prepare
    from bismut.cli.runs.tables import Mistakes
    from bismut.cli.runs.toml import read

    document, lines = read(file)
    try:
        ready = prepare(document, lines, str(file))
    except Mistakes as problem:
        if not as_json:
            raise
        print_json({"ok": False, "mistakes": [{"line": line, "key": ".".join(one.path), "text": one.text} for line, one in problem.placed]})
        raise typer.Exit(WRONG_USE) from None
    plan = ready.plan()
    if as_json:
        print_json({"ok": True, "mistakes": [], "plan": asdict(plan)})
        return
    print(f"{file}: no mistakes. {ready.scheme.title} on {ready.scheme.space}, step {ready.document['step']:g}, seed {ready.document['seed']}")
    print(plan)
