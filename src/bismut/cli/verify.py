"""`bismut verify WHAT`: every claim of a scheme, measured; with --data, whether a run folder holds what was written."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bismut.cli import options
from bismut.cli.group import FAILED, command, print_json, system_names

PAGE = Path("docs/measured.md")
REPORTS = Path("output/measured")


@command("every claim of a scheme, measured; or a folder's data")
@options.run_options(
    "system__parameters", "scheme__name", "bath__temperature", "bath__friction", "bath__rate", "bath__mobility", "bath__splitting", "step", "seed"
)
def verify(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[WHAT]", help="a gallery name, a run file, model.py:system, or the folder of a run", autocompletion=system_names),
    ] = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="for sampling: 10s, 2m, 1h; 0 for none")] = "10s",
    tolerance: Annotated[float, typer.Option(metavar="X", help="how far temperatures may deviate, relatively")] = 0.02,
    quick: Annotated[bool, typer.Option("--quick", help="only structure and consistency: no orders, no engines, no sampling")] = False,
    picture: Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="draw the report on one page")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="draw it on a dark background")] = False,
    everything: Annotated[bool, typer.Option("--all", help=f"the whole gallery; writes {PAGE}")] = False,
    own: Annotated[bool, typer.Option("--own", help="with --all: each system with its own scheme only")] = False,
    resume: Annotated[bool, typer.Option("--resume", help=f"with --all: resume what was interrupted, from {REPORTS}")] = False,
    peers: Annotated[bool, typer.Option("--peers", help="judge diffrax, jax-md and OpenMM, if they are installed, alongside bismut")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=f"where --all writes its page [{PAGE}]")] = None,
    data: Annotated[bool, typer.Option("--data", help="of a run's folder: compare every committed file with its checksum instead")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
    **typed: Any,
) -> None:
    """Measure every claim of a scheme: structure, orders, what was written by hand, engines, and equilibrium where there is a bath.

    \b
    bismut verify heavy-top --scheme verlet --step 0.01
    bismut verify pendulum --budget 2m --json
    bismut verify my_model.py:system --temperature 0.5 --rate 1
    bismut verify output/heavy-top
    bismut verify output/heavy-top --data
    bismut verify --peers
    bismut verify --all

    Exit codes: 0 every claim held, 1 a claim failed, 3 none failed but one is undecided, 2 wrong usage, 130 interrupted.
    """
    from bismut.errors import BismutError

    if sum([what is not None, everything, peers]) != 1:
        raise BismutError("verify expects one of: a name, a file or a folder; --all; --peers. `bismut list` shows the names.")
    if everything:
        _everything(out or PAGE, budget, quick, own, resume, as_json)
        return
    if peers:
        _peers(budget, as_json)
        return
    assert what is not None
    if data:
        print_data_report(Path(what), as_json)
        return
    from bismut.cli.runs.from_options import from_options
    from bismut.findings import verify as measure

    ready = from_options(_place(what), typed)
    settings = {"order": not quick, "budget": 0.0 if quick else budget, "tolerance": tolerance}
    report = measure(ready.scheme, ready.start, step=float(ready.document["step"]), seed=int(ready.document["seed"]), **settings)
    _show(report, as_json)  # first: what is measured is shown whatever becomes of the picture
    if picture is not None:
        report.figure(picture, dark=dark)
    raise typer.Exit(report.exit_code)


def print_data_report(run: Path, as_json: bool) -> None:
    """What of a run is complete, partial and corrupt."""
    from dataclasses import asdict

    from bismut.store import verify_data
    from bismut.store.run_reader import remedy

    report = verify_data(run)
    if as_json:
        print_json(asdict(report) | {"ok": report.ok})
    else:
        print(report if report.ok else f"{report}\n{remedy(run)}")
    if not report.ok:
        raise typer.Exit(FAILED)


def _place(what: str) -> str:
    """A run's folder stands for its run file."""
    from bismut.errors import BismutError
    from bismut.store import open_run

    folder = Path(what)
    if not folder.is_dir():
        return what
    if (folder / "model.txt").exists():
        raise BismutError(f"The system of {folder} came from a Python model, and a folder is never run as code. Use: bismut verify model.py:system")
    open_run(folder, allow_damage=True)  # is it a run, or parts of one?
    if not (folder / "run.toml").exists():
        raise BismutError(f"{folder} holds no run.toml, so it was not made by `bismut run`.")
    return str(folder / "run.toml")


def _show(report: Any, as_json: bool) -> None:
    if as_json:
        print_json(report.as_json())
        return
    import sys

    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(report)
    else:
        print(report)


def _everything(page: Path, budget: str, quick: bool, own: bool, resume: bool, as_json: bool) -> None:
    """Every system of the gallery with its own scheme and with each other one of its kind; the page after each, and a line for each."""
    import sys
    import time

    from bismut.cli.runs.verify_gallery import Settings, SystemWithScheme, measure_all, page_of, pairs
    from bismut.findings.verify import seconds_of
    from bismut.store import write_file

    seconds_of(budget)  # refused now, not after the first pair
    settings = Settings("0" if quick else budget, order=not quick)
    chosen, refused = pairs(own)
    page.parent.mkdir(parents=True, exist_ok=True)
    stream, began, reports = sys.stderr if as_json else sys.stdout, time.monotonic(), {}
    command = " ".join(["bismut verify --all", *(["--own"] if own else []), *(["--quick"] if quick else [f"--budget {budget}"])])

    def begun(number: int, pair: SystemWithScheme) -> None:
        print(f"[{number + 1}/{len(chosen)}, {(time.monotonic() - began) / 60:.0f} min] {pair.name} ...", file=sys.stderr, flush=True)

    for pair, report in measure_all(chosen, settings, REPORTS, resume=resume, begun=begun):
        reports[pair.name] = report
        print(f"{report.verdict.value:10} {pair.name}: {report.headline} ({report.seconds or 0:.0f} s)", file=stream, flush=True)
        write_file(page, page_of(reports, settings, refused, command, len(chosen) - len(reports)).encode())
    if as_json:
        print_json({name: report.as_json() for name, report in reports.items()})
    else:
        print(f"\nwritten to {page}")
    raise typer.Exit(max((report.exit_code for report in reports.values()), key=lambda code: {0: 0, 3: 1, 1: 2}[code], default=0))


def _peers(budget: str, as_json: bool) -> None:
    from bismut.findings.peers import judge_peers
    from bismut.findings.verify import seconds_of

    seconds_of(budget)
    reports, missing = judge_peers()
    if as_json:
        print_json({"reports": {name: report.as_json() for name, report in reports.items()}, "missing": missing})
        return
    for report in reports.values():
        print(f"{report}\n")
    for name, reason in missing.items():
        print(f"– {name}: {reason}")
