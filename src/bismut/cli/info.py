"""`bismut info RUN`: what a run folder holds."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from bismut.cli.group import command, print_json


@command("what the folder of a run holds")
def info(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="a folder written by `bismut run`")],
    as_json: Annotated[bool, typer.Option("--json", help="everything but the arrays, as JSON")] = False,
) -> None:
    """How a run was made, how it ended, and what it found.

    \b
    bismut info output/heavy-top
    """
    from bismut.cli.runs.toml import parsed
    from bismut.ensembles.result import header_notes
    from bismut.store import open_run, parts_of, read_run
    from bismut.store.manifest import MANIFEST

    if not (run / MANIFEST).is_file() and (parts := parts_of(run)):
        if as_json:
            print_json({"folder": run, "parts": {part.folder.name: {"state": part.state, "blocks": len(part.blocks)} for part in parts}})
        else:
            print(f"{run}: parts of a run, which `bismut merge {quote(str(run))}` puts together")
            print("\n".join(f"  blocks {part.folder.name.replace('-', ':')}: {part}" for part in parts))
        return
    stored = open_run(run)
    if "statistics" not in stored.committed:
        if as_json:
            print_json({"folder": run, "state": stored.state, "asked": stored.asked, "done": stored.done, "blocks": len(stored.blocks)})
        else:
            print(f"no statistics yet\n{_unfinished(run)}")
        return
    reader = read_run(run)
    groups = {name: group.to_dataset() for name, group in reader.statistics.children.items()}
    if as_json:
        observed = {name: {"words": data.attrs.get("words", ""), "arrays": _shapes(data)} for name, data in groups.items()}
        how_far = {"state": reader.stored.state, "asked": reader.stored.asked, "done": reader.stored.done}
        provenance = {"configuration": parsed(reader.configuration, str(run / "run.toml")), "provenance": reader.full_provenance}
        certificate = None if reader.certificate is None else reader.certificate.as_json()
        print_json({"folder": run, **how_far, **provenance, "statistics": observed, "certificate": certificate})
        return
    provenance, how = reader.full_provenance, reader.full_provenance["run"]
    print(f"{how['scheme']} on {how['space']}: {how['trajectories']} trajectories, {how['steps']} steps of {how['step']:g}, seed {how['seed']}")
    print("\n".join([provenance["outcome"]["words"], *header_notes(how)]))
    if reader.stored.state != "complete":
        print(f"not complete: {reader.stored}\n{_unfinished(run)}")
    after = f", after {provenance['seconds']:g} s" if "seconds" in provenance else ""
    print(f"\ncommand   {provenance.get('command', 'bismut.save')}\nwritten   {provenance['written']}{after}")
    print("versions  " + ", ".join(f"{name} {number}" for name, number in provenance.get("versions", how["versions"]).items()))
    if reader.certificate is not None:
        print("\n" + "\n".join(reader.certificate.short()))
    print("\nObserved")
    for name, data in groups.items():
        if name not in ("final", "outcome"):
            print(f"  {name}: {data.attrs.get('words') or ', '.join(map(str, data))}")
    final = groups.get("final")
    if final is not None and final.sizes:
        print(f"  final: {', '.join(f'{kind} {tuple(array.shape)}' for kind, array in final.items())}")
    repeating = _repeating_command(run, provenance)
    print(f"\nIn Python: bismut.load({str(run)!r}).  Pictures: bismut plot {quote(str(run))}.{repeating and f'  Again: {repeating}'}")


def _repeating_command(run: Path, provenance: dict[str, Any]) -> str:
    """The command that repeats a run: a run file names no code, and a run made in Python has none."""
    if provenance.get("model"):
        return provenance.get("command", "")
    return f"bismut run {quote(str(run / 'run.toml'))}" if (run / "run.toml").is_file() else ""


def _unfinished(run: Path) -> str:
    """What there is of a run that is not complete, and what to do with it."""
    from bismut.store import open_run, read_provenance, verify_data
    from bismut.store.run_reader import read_stable, remedy

    report, stored = verify_data(run), open_run(run)
    if not report.ok:
        return f"{report}\n{remedy(run)}"
    if stored.state == "running":
        return f"{report}\nIt is being written by {stored.writer or 'another process'}."
    model = (read_stable(run, read_provenance).get("model") or {}).get("place")
    return f"{report}\n`bismut resume {quote(str(run))}{f' --model {quote(model)}' if model else ''}` goes on."


def _shapes(data: Any) -> dict[str, dict[str, int]]:
    """Names and lengths of the axes of every array."""
    return {str(kind): {str(axis): length for axis, length in zip(array.dims, array.shape, strict=True)} for kind, array in data.items()}
