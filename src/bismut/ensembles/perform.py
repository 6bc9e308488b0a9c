"""A request carried out, after a look at what it takes."""

from __future__ import annotations

from typing import Any

from bismut.arguments import shown
from bismut.engines.compiler import check_compiler
from bismut.ensembles.journal import Journal
from bismut.ensembles.plan import check_memory, plan, rehearsed
from bismut.ensembles.request import Request
from bismut.ensembles.run import carry_out
from bismut.errors import DomainError
from bismut.executors import Executor


def perform(
    asked: Request,
    *,
    progress: bool | None = None,
    dry_run: bool = False,
    executor: Any = None,
    journal: Journal | None = None,
    blocks: range | None = None,
    deadline: float | None = None,
) -> Any:
    """The result of a request, or with `dry_run` its plan; refused if it does not fit into memory. The rest is as for `carry_out`."""
    check_compiler()
    if executor is not None and (isinstance(executor, type) or not isinstance(executor, Executor)):
        raise DomainError(f"executor must be Threads(n), Processes(n) or Dask(cluster), got {shown(executor)}.")
    check_memory(asked)
    if dry_run:
        return rehearsed(asked, plan(asked))
    return carry_out(asked, progress=progress, executor=executor, journal=journal, blocks=blocks, deadline=deadline)
