"""Who runs the blocks of a run, as it is typed: --workers 2, --cluster tls://host:8786, --cluster local:2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def chosen_executor(workers: int | None, cluster: str | None, insecure: bool) -> Iterator[Any]:
    """The executor that was asked for, for as long as it is needed; None for the usual one."""
    from bismut.errors import BismutError
    from bismut.executors import Dask, Processes

    if workers is not None and cluster is not None:
        raise BismutError("Give --workers or --cluster, not both. --cluster local:2 is a cluster on this machine.")
    if insecure and cluster is None:
        raise BismutError("--insecure needs --cluster, which was not given.")
    if cluster is not None:
        with Dask(cluster, insecure=insecure) as executor:
            yield executor
    elif workers is not None:
        with Processes(workers) as executor:
            yield executor
    else:
        yield None
