"""`bismut resume RUN`: go on with a run that was interrupted, killed or out of time."""

from typing import Any

from bismut.cli.group import command
from bismut.cli.options import RESUMING, RunFolder, with_options


@command("resume a run that was stopped or killed")
@with_options(RESUMING)
def resume(run: RunFolder, **how: Any) -> None:
    """Resume at the last committed block and checkpoint. The result is that of a run that was never stopped, bit for bit.

    Refused if configuration, dtype, block size, versions, machine or the text of a model have changed; it reports what differs.

    \b
    bismut resume output/heavy-top
    bismut resume output/my_model --model my_model.py:system
    bismut resume output/heavy-top --max-time 2h
    bismut resume output/heavy-top --cluster local:2
    """
    from bismut.cli.runs.restore import resume_stored

    resume_stored(run, {}, **how)
