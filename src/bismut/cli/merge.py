"""`bismut merge RUN`: one run of parts that were run with --blocks."""

from bismut.cli.group import command
from bismut.cli.options import AsJson, Force, Model, RunFolder


@command("combine parts that were run with --blocks into one run")
def merge(run: RunFolder, model: Model = None, force: Force = False, as_json: AsJson = False) -> None:
    """Put the parts of a run together. The result is that of the whole run, bit for bit, and nothing is computed; parts are removed afterwards.

    Refused if blocks are missing (it reports which), if a part is damaged or still being written, or if the parts do not belong to one run.

    \b
    bismut run heavy-top --trajectories 1e5 --out top --blocks 0:12
    bismut run heavy-top --trajectories 1e5 --out top --blocks 12:25
    bismut merge top
    """
    from bismut.cli.runs.execute import command_line, exit_with_code, print_outcome
    from bismut.cli.runs.restore import restore
    from bismut.store import merge_parts

    stored = merge_parts(run, lambda stored: restore(stored, model, force).request, command=command_line(), force=force)
    print_outcome(stored, as_json)
    exit_with_code(stored, run, model)
