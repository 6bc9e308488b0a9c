"""Where things live: spaces with the verbs move and subtract, and groups with a retraction."""

from bismut.spaces.circle import Circle, Torus
from bismut.spaces.dual import Dual, poisson_tensor
from bismut.spaces.euclidean import Euclidean
from bismut.spaces.product import Power, Product
from bismut.spaces.rigid_motion import SE2, SE3
from bismut.spaces.rotation import SO2, SO3
from bismut.spaces.space import Group, Point, Space, Velocity, add, pair, scale

__all__ = [
    "SE2",
    "SE3",
    "SO2",
    "SO3",
    "Circle",
    "Dual",
    "Euclidean",
    "Group",
    "Point",
    "Power",
    "Product",
    "Space",
    "Torus",
    "Velocity",
    "add",
    "pair",
    "poisson_tensor",
    "scale",
]
