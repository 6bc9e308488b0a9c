"""bismut: a stochastic action in, a structure-preserving simulation out."""

from bismut.actions import Action, Discrete, Midpoint, VariationalEuler, Verlet
from bismut.ensembles import Result, Trajectory, energy, kinetic_energy, momentum, simulate, temperature, trajectory
from bismut.findings import explain, verify
from bismut.flows import EulerMaruyama, ImplicitEulerMaruyama, RungeKutta4
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
