"""Many trajectories: run, observed on the fly; one kept whole; averages that can be differentiated."""

from bismut.ensembles.average import average
from bismut.ensembles.merging import merge
from bismut.ensembles.observable import (
    Observable,
    acceptance,
    energy,
    heat,
    integrator_error,
    invariant,
    kinetic_energy,
    momentum,
    potential_energy,
    temperature,
    work,
)
from bismut.ensembles.observers import (
    Observer,
    Report,
    Watcher,
    autocorrelation,
    extremes,
    first_passage,
    histogram,
    mean_squared_displacement,
    paths,
    quantiles,
    section,
    time_average,
    values,
)
from bismut.ensembles.outcome import Failure, Outcome
from bismut.ensembles.perform import perform
from bismut.ensembles.plan import Plan, plan
from bismut.ensembles.request import Request, request
from bismut.ensembles.result import Provenance, Result
from bismut.ensembles.run import carry_out
from bismut.ensembles.trajectory import Trajectory, trajectory

__all__ = [
    "Failure",
    "Observable",
    "Observer",
    "Outcome",
    "Plan",
    "Provenance",
    "Report",
    "Request",
    "Result",
    "Trajectory",
    "Watcher",
    "acceptance",
    "autocorrelation",
    "average",
    "carry_out",
    "energy",
    "extremes",
    "first_passage",
    "heat",
    "histogram",
    "integrator_error",
    "invariant",
    "kinetic_energy",
    "mean_squared_displacement",
    "merge",
    "momentum",
    "paths",
    "perform",
    "plan",
    "potential_energy",
    "quantiles",
    "request",
    "section",
    "temperature",
    "time_average",
    "trajectory",
    "values",
    "work",
]
