"""`bismut repair RUN`: recompute what is damaged."""

from bismut.cli.group import command, print_json
from bismut.cli.options import AsJson, Force, Model, RunFolder


@command("recompute what is damaged in the folder of a run")
def repair(run: RunFolder, model: Model = None, force: Force = False, as_json: AsJson = False) -> None:
    """Find what is missing or altered, and recompute exactly that: damaged blocks, statistics, documents, and what followed an altered line in the
    manifest. Blocks are functions of their numbers, so what is restored is what was lost.

    \b
    bismut verify output/heavy-top --data
    bismut repair output/heavy-top
    """
    from bismut.cli.runs.execute import command_line, exit_with_code
    from bismut.cli.runs.restore import restore
    from bismut.formatting import counted, first_of
    from bismut.store import repair as mend
    from bismut.store import verify_data

    done = mend(run, lambda stored: restore(stored, model, force).request, command=command_line(), force=force)
    if as_json:
        summary = {"damaged": done.damaged, "computed": done.computed, "others": done.others, "extended": done.extended}
        print_json({"folder": run, **summary})
    elif not done.damaged:
        print(f"{run}: nothing is damaged.")
    else:
        for place, problems in done.damaged.items():
            print(f"mended  {place}: {first_of(problems, between=' ')}")
        print(f"{counted(done.computed, 'block')} computed again")
        if done.others:
            print(f"not what they were, but what another program gives (see taken_up in provenance.json): {first_of(done.others)}")
        if done.extended:
            print("The run had been extended, as its run.toml and provenance.json say: it is restored as the longer run.")
        elif "manifest.jsonl" in done.damaged:
            print(
                "What stood behind the altered line is given up. If the run had been extended there, extend it again: this is what was asked before."
            )
        print(verify_data(run))
    if done.outcome is not None:
        exit_with_code(done.outcome, run, model)
