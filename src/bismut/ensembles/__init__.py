"""Many trajectories, observed as they run; single ones kept in full; averages that can be differentiated."""

from bismut.ensembles.assembly import merge
from bismut.ensembles.average import average
from bismut.ensembles.minimize import Minimum, minimize
from bismut.ensembles.observable import (
    Observable,
    acceptance,
    box_lengths,
    density,
    energy,
    energy_terms,
    heat,
    integrator_error,
    invariant,
    kinetic_energy,
    momentum,
    potential_energy,
    pressure,
    pressure_tensor,
    temperature,
    volume,
    volume_acceptance,
    work,
)
from bismut.ensembles.observers.correlation import autocorrelation
from bismut.ensembles.observers.displacement import mean_squared_displacement
from bismut.ensembles.observers.excursion import maximum_excursion
from bismut.ensembles.observers.extremes import extremes
from bismut.ensembles.observers.first_passage import first_passage
from bismut.ensembles.observers.histogram import histogram
from bismut.ensembles.observers.observer import Observer
from bismut.ensembles.observers.orientational_order import orientational_order
from bismut.ensembles.observers.paths import paths
from bismut.ensembles.observers.quantiles import quantiles
from bismut.ensembles.observers.radial_distribution import radial_distribution
from bismut.ensembles.observers.report import ObserverReport as Report
from bismut.ensembles.observers.section import section
from bismut.ensembles.observers.structure_factor import structure_factor
from bismut.ensembles.observers.time_average import time_average
from bismut.ensembles.observers.values import values
from bismut.ensembles.observers.watcher import Watcher
from bismut.ensembles.plan import Plan, plan
from bismut.ensembles.request import Request
from bismut.ensembles.result import Failure, Outcome, Result
from bismut.ensembles.run import complete_run, run_request
from bismut.ensembles.simulate import request, simulate
from bismut.ensembles.sweep import with_parameters
from bismut.ensembles.trajectory import Trajectory, trajectory
