"""Configuration spaces with the verbs move and subtract, and Lie groups with a retraction."""

from bismut.spaces.algebra import Algebra, matrix_algebra, sl, so, structure_constants
from bismut.spaces.body_motion import BodyMotion
from bismut.spaces.circle import Circle, Torus
from bismut.spaces.dual import Dual, poisson_tensor
from bismut.spaces.euclidean import Euclidean
from bismut.spaces.product import Power, Product
from bismut.spaces.rigid_motion import SE2, SE3
from bismut.spaces.rotation import SO2, SO3
from bismut.spaces.space import Group, Point, Space, Velocity, add, pair, scale
from bismut.spaces.unitary import Unitary, su

__all__ = [
    "SE2",
    "SE3",
    "SO2",
    "SO3",
    "Algebra",
    "BodyMotion",
    "Circle",
    "Dual",
    "Euclidean",
    "Group",
    "Point",
    "Power",
    "Product",
    "Space",
    "Torus",
    "Unitary",
    "Velocity",
    "add",
    "matrix_algebra",
    "pair",
    "poisson_tensor",
    "scale",
    "sl",
    "so",
    "structure_constants",
    "su",
]
