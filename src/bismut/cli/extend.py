"""`bismut extend RUN`, also `bismut continue RUN`: more steps or more trajectories of a run."""

from typing import Annotated

import typer

from bismut.cli import began
from bismut.cli.group import whole_number
from bismut.cli.resume import AsJson, Force, MaxTime, Model, RunFolder
from bismut.cli.runs.executors import Cluster, Insecure, Workers, chosen_executor


def extend(
    run: RunFolder,
    steps: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="how many steps more")] = None,
    trajectories: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="how many trajectories more")] = None,
    model: Model = None,
    force: Force = False,
    max_time: MaxTime = None,
    workers: Workers = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Give a run more steps or more trajectories. The result is that of the longer run, bit for bit: the one with the same `every` and `block`.

    Steps go on from the last states; blocks of a run that did not keep them (--no-final) begin again. More trajectories are further blocks, of the
    size that the run has. A run that is not complete is first brought to its end.

    \b
    bismut extend output/heavy-top --steps 5000
    bismut continue output/heavy-top --steps 5000
    bismut extend output/heavy-top --trajectories 10000
    """
    from bismut.cli.runs.again import again
    from bismut.cli.runs.carrying import carry_out, command_line
    from bismut.errors import BismutError
    from bismut.store import blocks_of, deadline_after, open_run, take_up

    if min(steps or 0, trajectories or 0) < 0 or not (steps or trajectories):
        raise BismutError("How much more? Give --steps N, --trajectories N or both.")
    deadline, stored = deadline_after(max_time, began()), open_run(run)
    if blocks_of(stored) is not None:
        raise BismutError(f"{run} is a part of a run: first `bismut merge` the whole, then extend that.")
    found = again(stored, model, force, steps=steps, trajectories=trajectories)
    with chosen_executor(workers, cluster, insecure) as executor:
        claimed = take_up(stored.folder, found.request, command=command_line(), documents=found.documents, extend=True, force=force)
        carry_out(claimed, found.request, deadline=deadline, as_json=as_json, model=model, executor=executor)
