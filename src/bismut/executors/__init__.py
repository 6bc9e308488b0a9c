"""Executors of jobs: threads, processes, and Dask, which is imported here only. They know no mechanics."""

from bismut.executors.dask_executor import Dask
from bismut.executors.executor import Channel, Executor, Failed, Unfinished
from bismut.executors.processes import Processes
from bismut.executors.threads import Threads, cores
