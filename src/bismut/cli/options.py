"""Options that several commands have, and those of `run`: how they are typed, and the words that --help has for them."""

from pathlib import Path
from typing import Annotated

import typer

from bismut.cli.group import begins, block_range, duration, system_names, whole_number
from bismut.cli.runs.schema import MOTIONS, OF_STATE, OF_SYSTEM, PLAIN_KINDS, SCHEMES, SPLITTINGS

# What is run.
What = Annotated[str, typer.Argument(metavar="WHAT", help="a gallery name, a run file, or model.py:system", autocompletion=system_names)]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="a parameter: name=1.5, name=1,2,3 or name=none; may be repeated")
]


def _spelled(name: str | None) -> str | None:
    """The name of a scheme, however it is capitalised."""
    return name if name is None else {known.lower(): known for known in SCHEMES}.get(name.lower(), name)


Scheme = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"{', '.join(SCHEMES)} [the system's own choice]", autocompletion=begins(SCHEMES), callback=_spelled),
]
Retraction = Annotated[str | None, typer.Option(metavar="NAME", help="cayley or exp, for the first three schemes [cayley]")]
Temperature = Annotated[float | None, typer.Option(metavar="KT", help="a heat bath: its kT")]
Friction = Annotated[
    str | None, typer.Option(metavar="NUMBERS", help="of the bath: a number, or one per coordinate; without it the system's own noise is the bath")
]
Rate = Annotated[str | None, typer.Option(metavar="NUMBER", help="of the bath, instead of friction: how fast momenta decay")]
Splitting = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"of the bath: {', '.join(SPLITTINGS)} [BAOAB]", autocompletion=begins(SPLITTINGS))
]
Start = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="where it starts: q=0.5 or q=[[...]], and one of velocity=, momentum=, temperature= (random momenta); project=true moves it onto "
        "the constraints; file=last.gsd and frame=-1 begin at a frame (GSD, extxyz); what is not given is the system's own; may be repeated",
        autocompletion=begins(tuple(f"{key}=" for key in ("q", *MOTIONS, "project", "file", "frame"))),
    ),
]
Step = Annotated[float | None, typer.Option(metavar="H", help="time step [the system's own choice]")]
Steps = Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="how many steps [1000]")]
Trajectories = Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="how many trajectories, or the most with --until [100]")]
Seed = Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="of the noise [0]")]
Every = Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="steps between observations [about a hundred observations]")]
BurnIn = Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="steps before observation begins [0]")]
T0 = Annotated[float | None, typer.Option("--t0", metavar="T", help="the time at the start, if anything depends on it [0]")]
Sweep = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=A,B,C", help="run with each of several values of a parameter, on the same noise; may be repeated, for a grid"),
]
Observe = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT",
        help="what is observed, see above; separated by commas or repeated [energy, temperature, all momentum maps]",
        autocompletion=begins((*OF_SYSTEM, *OF_STATE, "paths", *(f"{kind}:" for kind in PLAIN_KINDS))),
    ),
]
Until = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=ERROR", help="stop adding trajectories once the standard error of an observer is that small; may be repeated"),
]

# Where it is kept, and who runs it.
Out = Annotated[Path | None, typer.Option(metavar="FOLDER", help="folder for the results [output/NAME, or the next free name]")]
Final = Annotated[bool | None, typer.Option("--final/--no-final", help="keep the last states, from which a run can be extended [yes]")]
Block = Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="trajectories per block [by the work of the run]")]
Blocks = Annotated[
    range | None,
    typer.Option(parser=block_range, metavar="A:B", help="run only these blocks, as a part in FOLDER/parts; `bismut merge FOLDER` joins parts"),
]
MaxTime = Annotated[
    float | None, typer.Option(parser=duration, metavar="TIME", help="stop shortly before TIME is up, with exit code 75: 90s, 30m, 2h or 1:30:00")
]
Workers = Annotated[
    int | None, typer.Option(parser=whole_number, metavar="N", help="run blocks in N processes on this machine [threads of one process]")
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="WHERE", help="run blocks on a cluster of Dask: tls://HOST:PORT, tcp://HOST:PORT on this machine, or local:N to start one"),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="allow --cluster tcp:// to another machine: anyone who reaches it can run programs on it")]

# A run that is there.
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="a folder written by `bismut run`")]
Model = Annotated[str | None, typer.Option(metavar="FILE.py:NAME", help="the Python model of the run, if it has one")]
Force = Annotated[bool, typer.Option("--force", help="continue even if versions, machine or model differ; this is recorded")]
AsJson = Annotated[bool, typer.Option("--json", help="outcome and last values as JSON")]
