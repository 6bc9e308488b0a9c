"""`bismut resume RUN`: go on with a run that was interrupted, killed or out of time."""

from pathlib import Path
from typing import Annotated

import typer

from bismut.cli import began
from bismut.cli.group import duration
from bismut.cli.runs.executors import Cluster, Insecure, Workers, chosen_executor

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="a folder that `bismut run` left")]
Model = Annotated[str | None, typer.Option(metavar="FILE.py:NAME", help="the Python model that the run came from, if it came from one")]
Force = Annotated[bool, typer.Option("--force", help="go on although versions, machine or model are others; that is written down")]
MaxTime = Annotated[
    float | None, typer.Option(parser=duration, metavar="TIME", help="stop a little before, with exit code 75: 90s, 30m, 2h or 1:30:00")
]
AsJson = Annotated[bool, typer.Option("--json", help="outcome and last values as JSON")]


def resume(
    run: RunFolder,
    model: Model = None,
    force: Force = False,
    max_time: MaxTime = None,
    workers: Workers = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Go on at the last committed block and checkpoint. The result is that of a run that was never stopped, bit for bit.

    It is refused, with what differs, if configuration, dtype, block size, versions, machine or the text of a model are others than they were.

    \b
    bismut resume output/heavy-top
    bismut resume output/my_model --model my_model.py:system
    bismut resume output/heavy-top --max-time 2h
    bismut resume output/heavy-top --cluster local:2
    """
    from bismut.cli.runs.again import again
    from bismut.cli.runs.carrying import carry_out, command_line
    from bismut.store import blocks_of, deadline_after, open_run, take_up

    deadline, stored = deadline_after(max_time, began()), open_run(run)
    if stored.state == "complete":
        print(f"{run} is complete: {stored}. Nothing is computed; `bismut extend {run}` adds steps or trajectories.")
        return
    found, blocks = again(stored, model, force), blocks_of(stored)
    with chosen_executor(workers, cluster, insecure) as executor:
        claimed = take_up(stored.folder, found.request, command=command_line(), documents=found.documents, force=force)
        carry_out(claimed, found.request, deadline=deadline, as_json=as_json, model=model, blocks=blocks, executor=executor)
