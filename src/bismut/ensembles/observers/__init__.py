"""Who looks on while a run goes on, in constant memory; one idea per file."""

from bismut.ensembles.observers.correlation import autocorrelation
from bismut.ensembles.observers.displacement import mean_squared_displacement
from bismut.ensembles.observers.extremes import extremes
from bismut.ensembles.observers.first_passage import first_passage
from bismut.ensembles.observers.histogram import histogram
from bismut.ensembles.observers.observer import Observer
from bismut.ensembles.observers.paths import paths
from bismut.ensembles.observers.quantiles import quantiles
from bismut.ensembles.observers.report import Report
from bismut.ensembles.observers.section import section
from bismut.ensembles.observers.time_average import time_average
from bismut.ensembles.observers.values import values
from bismut.ensembles.observers.watcher import Watcher

__all__ = [
    "Observer",
    "Report",
    "Watcher",
    "autocorrelation",
    "extremes",
    "first_passage",
    "histogram",
    "mean_squared_displacement",
    "paths",
    "quantiles",
    "section",
    "time_average",
    "values",
]
