"""The place: one scalar per file, each a discrete Lagrangian."""

from bismut.actions.action import Action
from bismut.actions.discrete import Discrete
from bismut.actions.discrete_hamiltonian import DiscreteHamiltonian
from bismut.actions.hamiltonian_euler import HamiltonianEuler
from bismut.actions.hamiltonian_midpoint import HamiltonianMidpoint
from bismut.actions.hamiltonian_verlet import HamiltonianVerlet
from bismut.actions.midpoint import Midpoint
from bismut.actions.spherical_midpoint import SphericalMidpoint
from bismut.actions.variational_euler import VariationalEuler
from bismut.actions.verlet import Verlet

__all__ = [
    "Action",
    "Discrete",
    "DiscreteHamiltonian",
    "HamiltonianEuler",
    "HamiltonianMidpoint",
    "HamiltonianVerlet",
    "Midpoint",
    "SphericalMidpoint",
    "VariationalEuler",
    "Verlet",
]
