"""Many trajectories: run, observed on the fly; and one kept whole."""

from bismut.ensembles.observable import Observable, energy, kinetic_energy, momentum, temperature
from bismut.ensembles.observers.report import Report
from bismut.ensembles.outcome import Failure, Outcome
from bismut.ensembles.result import Provenance, Result
from bismut.ensembles.simulate import simulate
from bismut.ensembles.trajectory import Trajectory, trajectory

__all__ = [
    "Failure",
    "Observable",
    "Outcome",
    "Provenance",
    "Report",
    "Result",
    "Trajectory",
    "energy",
    "kinetic_energy",
    "momentum",
    "simulate",
    "temperature",
    "trajectory",
]
