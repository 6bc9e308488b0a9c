"""Options that several commands have: those of a run, which come from the schema of run files, and those that say how it is run."""

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer

from bismut.cli.group import block_range, completion, duration, parsed_integer, system_names
from bismut.cli.runs.schema import OPTIONS
from bismut.cli.runs.tables import Key, OneOf, Table
from bismut.registry import OBSERVERS, QUANTITIES

Command = TypeVar("Command", bound=Callable[..., Any])

What = Annotated[str, typer.Argument(metavar="WHAT", help="a gallery name, a run file, or model.py:system", autocompletion=system_names)]
_TYPES = {"number": float, "whole": int, "flag": bool, "folder": Path, "assignments": list[str], "list": list[str]}


def with_options(options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """A decorator: a command that takes options, by name and annotation, as **keywords."""

    def decorate(command: Command) -> Command:
        flags = {name for name, one in options.items() if get_args(one)[0] is bool}
        added = [Parameter(name, Parameter.KEYWORD_ONLY, default=False if name in flags else None, annotation=one) for name, one in options.items()]
        own = [one for one in signature(command).parameters.values() if one.kind is not one.VAR_KEYWORD]
        parameters = [*own[:1], *added, *(one.replace(kind=one.KEYWORD_ONLY) for one in own[1:])]
        vars(command)["__signature__"] = Signature(parameters)
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorate


def run_options(*names: str) -> Callable[[Command], Command]:
    """A decorator: a command whose **typed are options of a run, those named or all of them."""
    return with_options({name: _option(name) for name in names or OPTIONS})


def _option(name: str) -> Any:
    key = OPTIONS[name]
    settings: dict[str, Any] = {"parser": parsed_integer} if key.typed == "whole" else {}
    if names := _names(name, key):
        settings["autocompletion"] = completion(names)
    option = typer.Option(f"--{(key.option or name.rpartition('__')[2]).replace('_', '-')}", metavar=key.metavar or None, help=key.help, **settings)
    return Annotated[_TYPES.get(key.typed, str) | None, option]


def _names(name: str, key: Key) -> Callable[[], Iterable[str]] | None:
    """What can be completed after an option."""
    if name == "observe":
        return lambda: [*QUANTITIES.names(), "q", "p", "orientation", "paths", *(f"{kind}:" for kind in OBSERVERS.names())]
    if isinstance(key.rule, Table):
        return lambda: [f"{one}=" for one in key.rule.keys]
    return key.rule.names if isinstance(key.rule, OneOf) else None


# How it is run.
Blocks = Annotated[
    range | None,
    typer.Option(parser=block_range, metavar="A:B", help="run only these blocks, as a part in FOLDER/parts; `bismut merge FOLDER` joins parts"),
]
MaxTime = Annotated[
    float | None, typer.Option(parser=duration, metavar="TIME", help="stop shortly before TIME is up, with exit code 75: 90s, 30m, 2h or 1:30:00")
]
Workers = Annotated[
    int | None, typer.Option(parser=parsed_integer, metavar="N", help="run blocks in N processes on this machine [threads of one process]")
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="WHERE", help="run blocks on a cluster of Dask: tls://HOST:PORT, tcp://HOST:PORT on this machine, or local:N to start one"),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="allow --cluster tcp:// to another machine: anyone who reaches it can run programs on it")]

# A stored run.
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="a folder written by `bismut run`")]
Model = Annotated[str | None, typer.Option(metavar="FILE.py:NAME", help="the Python model of the run, if it has one")]
Force = Annotated[bool, typer.Option("--force", help="continue even if versions, arithmetic or model differ; this is recorded")]
AsJson = Annotated[bool, typer.Option("--json", help="outcome and last values as JSON")]
RESUMING = {
    "model": Model,
    "force": Force,
    "max_time": MaxTime,
    "workers": Workers,
    "cluster": Cluster,
    "insecure": Insecure,
    "as_json": AsJson,
}
