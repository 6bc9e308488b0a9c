"""Schemes: one scalar per file, each a discrete Lagrangian or a discrete Hamiltonian."""

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
