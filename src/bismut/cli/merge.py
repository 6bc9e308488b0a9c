"""`bismut merge RUN`: one run of parts that were run with --blocks."""

from bismut.cli.options import AsJson, Force, Model, RunFolder


def merge(run: RunFolder, model: Model = None, force: Force = False, as_json: AsJson = False) -> None:
    """Put the parts of a run together. The result is that of the whole run, bit for bit, and nothing is computed; parts are removed afterwards.

    Refused if blocks are missing (it reports which), if a part is damaged or still being written, or if the parts do not belong to one run.

    \b
    bismut run heavy-top --trajectories 1e5 --out top --blocks 0:12
    bismut run heavy-top --trajectories 1e5 --out top --blocks 12:25
    bismut merge top
    """
    from bismut.cli.runs.again import again
    from bismut.cli.runs.carrying import command_line, end, tell
    from bismut.store import merge_parts

    kept = merge_parts(run, lambda stored: again(stored, model, force).request, command=command_line(), force=force)
    tell(kept, as_json)
    end(kept, run, model)
