"""The place: one scalar per file, each a discrete Lagrangian."""

from bismut.actions.action import Action
from bismut.actions.discrete import Discrete
from bismut.actions.midpoint import Midpoint
from bismut.actions.variational_euler import VariationalEuler
from bismut.actions.verlet import Verlet

__all__ = ["Action", "Discrete", "Midpoint", "VariationalEuler", "Verlet"]
