"""bismut: a stochastic action in, a structure-preserving simulation out."""

from bismut.actions import Action, Discrete, Midpoint, VariationalEuler, Verlet
from bismut.ensembles import Result, Trajectory, energy, kinetic_energy, momentum, simulate, temperature, trajectory
from bismut.findings import explain, verify
from bismut.flows import EulerMaruyama, ImplicitEulerMaruyama, RungeKutta4, action_differential, action_sum, euler_lagrange
from bismut.mechanics import (
    State,
    System,
    left_rotation,
    left_rotations,
    mechanical,
    right_rotation,
    rigid_bodies,
    symmetry,
    translation,
    translations,
)
from bismut.noise import Wiener
from bismut.spaces import SE2, SE3, SO2, SO3, Circle, Euclidean, Group, Power, Product, Space, Torus
from bismut.store import load, save

__all__ = [
    "SE2",
    "SE3",
    "SO2",
    "SO3",
    "Action",
    "Circle",
    "Discrete",
    "Euclidean",
    "EulerMaruyama",
    "Group",
    "ImplicitEulerMaruyama",
    "Midpoint",
    "Power",
    "Product",
    "Result",
    "RungeKutta4",
    "Space",
    "State",
    "System",
    "Torus",
    "Trajectory",
    "VariationalEuler",
    "Verlet",
    "Wiener",
    "action_differential",
    "action_sum",
    "energy",
    "euler_lagrange",
    "explain",
    "kinetic_energy",
    "left_rotation",
    "left_rotations",
    "load",
    "mechanical",
    "momentum",
    "right_rotation",
    "rigid_bodies",
    "save",
    "simulate",
    "symmetry",
    "temperature",
    "trajectory",
    "translation",
    "translations",
    "verify",
]
