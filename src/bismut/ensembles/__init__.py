"""Many trajectories: run, observed on the fly; and one kept whole."""

from bismut.ensembles.observable import (
    Observable,
    acceptance,
    energy,
    heat,
    integrator_error,
    kinetic_energy,
    momentum,
    temperature,
    work,
)
from bismut.ensembles.outcome import Failure, Outcome
from bismut.ensembles.result import Provenance, Result, Statistics
from bismut.ensembles.simulate import simulate
from bismut.ensembles.trajectory import Trajectory, trajectory

__all__ = [
    "Failure",
    "Observable",
    "Outcome",
    "Provenance",
    "Result",
    "Statistics",
    "Trajectory",
    "acceptance",
    "energy",
    "heat",
    "integrator_error",
    "kinetic_energy",
    "momentum",
    "simulate",
    "temperature",
    "trajectory",
    "work",
]
