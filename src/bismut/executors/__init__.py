"""Who runs blocks: threads here, processes here, and Dask. They know no mechanics; only here is Dask imported."""

from bismut.executors.cluster import Dask
from bismut.executors.executor import Again, Executor, Failed, Line
from bismut.executors.processes import Processes
from bismut.executors.threads import Threads, cores

__all__ = ["Again", "Dask", "Executor", "Failed", "Line", "Processes", "Threads", "cores"]
