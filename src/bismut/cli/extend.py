"""`bismut extend RUN`, also `bismut continue RUN`: more steps or more trajectories of a run."""

from typing import Annotated, Any

import typer

from bismut.cli.group import command, parsed_integer
from bismut.cli.options import RESUMING, RunFolder, with_options


@command("the same as extend", "continue")
@command("more steps or trajectories of a run")
@with_options(RESUMING)
def extend(
    run: RunFolder,
    steps: Annotated[int | None, typer.Option(parser=parsed_integer, metavar="N", help="how many more steps")] = None,
    trajectories: Annotated[int | None, typer.Option(parser=parsed_integer, metavar="N", help="how many more trajectories")] = None,
    **how: Any,
) -> None:
    """Give a run more steps or more trajectories. The result is that of the longer run, bit for bit: the one with the same `every` and `block`.

    Steps continue from the last states; blocks of a run that did not keep them (--no-final) start again. More trajectories are further blocks, of
    the same size. An incomplete run is completed first.

    \b
    bismut extend output/heavy-top --steps 5000
    bismut continue output/heavy-top --steps 5000
    bismut extend output/heavy-top --trajectories 10000
    """
    from bismut.cli.runs.restore import resume_stored
    from bismut.errors import BismutError

    if min(steps or 0, trajectories or 0) < 0 or not (steps or trajectories):
        raise BismutError("How much more? Give --steps N, --trajectories N or both.")
    more = {"steps": steps or 0, "trajectories": trajectories or 0}
    resume_stored(run, more, **how)
