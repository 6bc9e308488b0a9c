"""`bismut run NAME | RUN.toml | model.py:system`: a run, from what is typed or from a file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli import began, options
from bismut.cli.group import command, print_json

OUTPUT = Path("output")


@command("run a system, and keep what was observed in a folder")
@options.run_options()
def run(
    what: options.What,
    max_time: options.MaxTime = None,
    workers: options.Workers = None,
    cluster: options.Cluster = None,
    insecure: options.Insecure = False,
    blocks: options.Blocks = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the results of an earlier run")] = False,
    write: Annotated[Path | None, typer.Option(metavar="RUN.toml", help="write the run file for what was typed, and run")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="report what the run would take, and do not run")] = False,
    as_json: options.AsJson = False,
    **typed: Any,
) -> None:
    """Run a system and keep what was observed, with its configuration and provenance, in a folder.

    \b
    bismut run heavy-top
    bismut run heavy-top --set inertia=1,2,3 --set weight=2 --scheme Midpoint --steps 5000 --trajectories 1000
    bismut run magnetic-dipoles --temperature 0.5 --rate 1 --splitting BAOAB --observe energy,temperature,paths
    bismut run pendulum --start q=1.5 --start temperature=0.2 --sweep stiffness=0.5,1,2 --observe energy,time_average:q
    bismut run pendulum --trajectories 100000 --until energy=0.001
    bismut run pendulum --trajectories 10000 --write pendulum.toml --dry-run
    bismut run pendulum.toml --seed 2 --out second
    bismut run my_model.py:system --set length=2
    bismut run heavy-top --trajectories 1e6 --cluster tls://head:8786
    bismut run heavy-top --trajectories 1e6 --out top --blocks 0:12

    \b
    --observe takes
      energy,q,vertical      quantities: q, p, orientation, the name of a symmetry (its momentum map; `bismut show` lists them),
                             {quantities}
      paths                  the first three trajectories
      time_average:energy    an observer of a quantity; mean_squared_displacement and maximum_excursion stand alone:
                             {observers}
      'a={...}'              any observer, as in a run file, under a name you choose:
                             'turns={kind="histogram", of={name="p", component=0}, range=[-3, 3]}'

    Every block is committed as it ends, and `bismut resume FOLDER` resumes a run that was stopped, killed or out of time.

    docs/command-line.md has every key of a run file. Exit codes: 0 success, 1 trajectories failed or the disk is full, 2 wrong usage,
    75 the time is up, 130 interrupted, 143 ended by SIGTERM.
    """
    from bismut.cli.runs.execute import chosen_executor
    from bismut.cli.runs.from_options import from_options

    ready = from_options(what, typed)
    if write is not None:
        _write(write, ready, overwrite)
    if dry_run:
        _rehearse(ready, as_json)
        return
    overwrite = overwrite or ready.document.get("output", {}).get("overwrite", False)
    with chosen_executor(workers, cluster, insecure) as executor:
        _execute(ready, overwrite, as_json, max_time, executor, blocks)


def _write(file: Path, ready: Any, overwrite: bool) -> None:
    from bismut.cli.runs.execute import configuration
    from bismut.errors import BismutError

    if ready.model.text is not None:
        raise BismutError(
            f"--write: a run file cannot name a Python model such as {ready.model.entry.name}, because it cannot execute code. "
            "The command line itself repeats the run; it is kept in provenance.json of the run's folder."
        )
    if file.exists() and not overwrite:
        raise BismutError(f"--write: {file} exists already. Choose another name, or replace it with --overwrite.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(configuration(ready), encoding="utf-8")


def _rehearse(ready: Any, as_json: bool) -> None:
    from dataclasses import asdict

    plan = ready.plan()
    if as_json:
        print_json({"plan": asdict(plan)})
    else:
        print(plan)


def _execute(ready: Any, overwrite: bool, as_json: bool, max_time: float | None, executor: Any, blocks: range | None) -> None:
    from bismut.cli.runs.execute import claimed, execute, execute_part
    from bismut.ensembles.interruption import deadline_after
    from bismut.errors import BismutError

    deadline, output = deadline_after(max_time, began()), ready.document.get("output", {})
    # A model is called file.py:name, and its results after the file.
    name = Path(ready.model.entry.name.partition(":")[0]).stem
    request, folder = ready.request(), Path(output.get("folder", OUTPUT / name))
    if blocks is not None:
        if "folder" not in output:
            raise BismutError("--blocks needs --out FOLDER, in which the parts of the run meet.")
        execute_part(ready, request, folder, blocks, overwrite=overwrite, deadline=deadline, as_json=as_json, executor=executor)
        return
    run = claimed(ready, request, folder, overwrite=overwrite, numbered="folder" not in output and not overwrite)
    model = None if ready.model.text is None else ready.model.entry.name
    execute(run, request, deadline=deadline, as_json=as_json, model=model, executor=executor)
