"""`bismut repair RUN`: recompute what is damaged."""

from bismut.cli.group import print_json
from bismut.cli.resume import AsJson, Force, Model, RunFolder


def repair(run: RunFolder, model: Model = None, force: Force = False, as_json: AsJson = False) -> None:
    """Find what is missing or altered, and recompute exactly that: damaged blocks, statistics, documents, and what stood in the manifest behind an
    altered line. Blocks are functions of their numbers, so what is restored is what was lost.

    \b
    bismut verify output/heavy-top --data
    bismut repair output/heavy-top
    """
    from bismut.cli.runs.again import again
    from bismut.cli.runs.carrying import command_line
    from bismut.store import repair as mend
    from bismut.store import verify_data

    done = mend(run, lambda stored: again(stored, model, force).request, command=command_line(), force=force)
    if as_json:
        print_json({"folder": run, "damaged": done.damaged, "computed": done.computed, "others": done.others})
        return
    if not done.damaged:
        print(f"{run}: nothing is damaged.")
        return
    for place, problems in done.damaged.items():
        print(f"mended  {place}: {'; '.join(problems)}")
    print(f"{done.computed} blocks computed again")
    if done.others:
        print(f"not what they were, but what another program gives (see taken_up in provenance.json): {', '.join(done.others)}")
    if "manifest.jsonl" in done.damaged:
        print("What stood behind the altered line is given up. If the run had been extended there, extend it again: this is what was asked before.")
    print(verify_data(run))
