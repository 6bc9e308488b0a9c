"""`bismut extend RUN`, also `bismut continue RUN`: more steps or more trajectories of a run."""

from typing import Annotated

import typer

from bismut.cli.group import whole_number
from bismut.cli.options import AsJson, Cluster, Force, Insecure, MaxTime, Model, RunFolder, Workers


def extend(
    run: RunFolder,
    steps: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="how many more steps")] = None,
    trajectories: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="how many more trajectories")] = None,
    model: Model = None,
    force: Force = False,
    max_time: MaxTime = None,
    workers: Workers = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Give a run more steps or more trajectories. The result is that of the longer run, bit for bit: the one with the same `every` and `block`.

    Steps continue from the last states; blocks of a run that did not keep them (--no-final) start again. More trajectories are further blocks, of
    the same size. An incomplete run is completed first.

    \b
    bismut extend output/heavy-top --steps 5000
    bismut continue output/heavy-top --steps 5000
    bismut extend output/heavy-top --trajectories 10000
    """
    from bismut.cli.runs.going_on import go_on
    from bismut.errors import BismutError

    if min(steps or 0, trajectories or 0) < 0 or not (steps or trajectories):
        raise BismutError("How much more? Give --steps N, --trajectories N or both.")
    more = {"steps": steps or 0, "trajectories": trajectories or 0}
    go_on(run, more, model=model, force=force, max_time=max_time, workers=workers, cluster=cluster, insecure=insecure, as_json=as_json)
