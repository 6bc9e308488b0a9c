"""`bismut run NAME | RUN.toml | model.py:system`: a run, from what is typed or from a file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli import began
from bismut.cli.group import begins, block_range, duration, print_json, system_names, whole_number
from bismut.cli.runs.executors import Cluster, Insecure, Workers, chosen_executor
from bismut.cli.runs.schema import MOTIONS, OF_STATE, OF_SYSTEM, PLAIN_KINDS, SCHEMES, SPLITTINGS

OUTPUT = Path("output")


def run(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="a gallery name, a run file, or model.py:system", autocompletion=system_names)],
    parameters: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="a parameter: name=1.5, name=1,2,3 or name=none; may be repeated")
    ] = None,
    scheme: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"{', '.join(SCHEMES)} [the system's own choice]", autocompletion=begins(SCHEMES))
    ] = None,
    retraction: Annotated[str | None, typer.Option(metavar="NAME", help="cayley or exp, for the first three schemes [cayley]")] = None,
    temperature: Annotated[float | None, typer.Option(metavar="KT", help="a heat bath: its kT")] = None,
    friction: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="of the bath: a number, or one per coordinate; without it the system's own noise is the bath"),
    ] = None,
    rate: Annotated[str | None, typer.Option(metavar="NUMBER", help="of the bath, instead of friction: how fast momenta forget")] = None,
    splitting: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"of the bath: {', '.join(SPLITTINGS)} [BAOAB]", autocompletion=begins(SPLITTINGS))
    ] = None,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="where it begins: q=0.5 or q=[[...]], and one of velocity=, momentum=, temperature= (random momenta); project=true moves it onto "
            "the constraints; file=last.gsd and frame=-1 begin at a frame (GSD, extxyz); what is not given is the system's own; may be repeated",
            autocompletion=begins(tuple(f"{key}=" for key in ("q", *MOTIONS, "project", "file", "frame"))),
        ),
    ] = None,
    step: Annotated[float | None, typer.Option(metavar="H", help="time step [the system's own choice]")] = None,
    steps: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="how many steps [1000]")] = None,
    trajectories: Annotated[
        int | None, typer.Option(parser=whole_number, metavar="N", help="how many trajectories, or the most with --until [100]")
    ] = None,
    seed: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="of the noise [0]")] = None,
    every: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="steps between looks [about a hundred looks]")] = None,
    burn_in: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="steps before anybody looks [0]")] = None,
    t0: Annotated[float | None, typer.Option("--t0", metavar="T", help="the time at the start, where something depends on it [0]")] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B,C", help="run with each of several values of a parameter, on the same noise; may be repeated, for a grid"),
    ] = None,
    observe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="what is looked at, see above; commas or repeated [energy, temperature, all momentum maps]",
            autocompletion=begins((*OF_SYSTEM, *OF_STATE, "paths", *(f"{kind}:" for kind in PLAIN_KINDS))),
        ),
    ] = None,
    until: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=ERROR", help="stop adding trajectories once the standard error of an observer is that small; may be repeated"),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="folder for the results [output/NAME, or the next free name]")] = None,
    final: Annotated[bool | None, typer.Option("--final/--no-final", help="keep the last states, from which more steps can go on [yes]")] = None,
    block: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="trajectories of a block [by the size of a step]")] = None,
    max_time: Annotated[
        float | None, typer.Option(parser=duration, metavar="TIME", help="stop a little before, with exit code 75: 90s, 30m, 2h or 1:30:00")
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    blocks: Annotated[
        range | None,
        typer.Option(parser=block_range, metavar="A:B", help="run only these blocks, as a part in FOLDER/parts; `bismut merge FOLDER` joins parts"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the results of an earlier run")] = False,
    write: Annotated[Path | None, typer.Option(metavar="RUN.toml", help="write the run file for what was typed, and run")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what the run would take, and do not run")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="outcome and last values as JSON")] = False,
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
      energy,q,vertical      quantities: energy, kinetic_energy, temperature, q, p, orientation, the name of a symmetry
                             (its momentum map; `bismut show` lists them); in a bath heat, work, integrator_error, acceptance
      paths                  the first three trajectories, whole
      time_average:energy    an observer of a quantity: time_average, extremes, quantiles, autocorrelation;
                             mean_squared_displacement stands alone
      'a={...}'              any observer, as in a run file, under a name of yours:
                             'turns={kind="histogram", of={name="p", component=0}, range=[-3, 3]}'

    Every block is committed as it ends, and `bismut resume FOLDER` goes on with a run that was stopped, killed or out of time.

    docs/command-line.md has every key of a run file. Exit codes: 0 fine, 1 trajectories failed or the disk is full, 2 wrong use, 75 the time is up,
    130 interrupted, 143 ended by SIGTERM.
    """
    from bismut.cli.runs import typed

    numbers = {"step": step, "steps": steps, "trajectories": trajectories, "seed": seed, "every": every, "burn_in": burn_in, "t0": t0, "block": block}
    tables = {
        "parameters": typed.parameters(parameters),
        "scheme": {"name": scheme, "retraction": retraction},
        "bath": {
            "temperature": temperature,
            "friction": typed.numbers("friction", friction),
            "rate": typed.numbers("rate", rate),
            "splitting": splitting,
        },
        "start": typed.settings("--start", start, "q=0.5"),
        "sweep": typed.sweeps(sweep),
        "until": typed.settings("--until", until, "energy=0.01"),
        "output": {"folder": out and str(out), "final": final},
    }
    ready = typed.from_typed(what, numbers, tables, observe or [])
    if write is not None:
        _write(write, ready, overwrite)
    if dry_run:
        _rehearse(ready, as_json)
        return
    overwrite = overwrite or ready.document.get("output", {}).get("overwrite", False)
    with chosen_executor(workers, cluster, insecure) as executor:
        _carry_out(ready, overwrite, as_json, max_time, executor, blocks)


def _write(file: Path, ready: Any, overwrite: bool) -> None:
    from bismut.cli.runs.carrying import configuration
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

    plan = ready.simulate(dry_run=True)
    if as_json:
        print_json({"plan": asdict(plan)})
    else:
        print(plan)


def _carry_out(ready: Any, overwrite: bool, as_json: bool, max_time: float | None, executor: Any, blocks: range | None) -> None:
    from bismut.cli.runs.carrying import carry_out, claimed
    from bismut.cli.runs.parts import carry_out_part
    from bismut.errors import BismutError
    from bismut.store import deadline_after

    deadline, output = deadline_after(max_time, began()), ready.document.get("output", {})
    # A model is called file.py:name, and its results after the file.
    name = Path(ready.model.entry.name.partition(":")[0]).stem
    request, folder = ready.request(), Path(output.get("folder", OUTPUT / name))
    if blocks is not None:
        if "folder" not in output:
            raise BismutError("--blocks needs --out FOLDER, in which the parts of the run meet.")
        carry_out_part(ready, request, folder, blocks, overwrite=overwrite, deadline=deadline, as_json=as_json, executor=executor)
        return
    run = claimed(ready, request, folder, overwrite=overwrite, numbered="folder" not in output)
    model = None if ready.model.text is None else ready.model.entry.name
    carry_out(run, request, deadline=deadline, as_json=as_json, model=model, executor=executor)
