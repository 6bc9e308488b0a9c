"""Many rigid bodies: what they are, how they act on each other, and what shakes them."""

from bismut.mechanics.bodies.box import Box, box_of
from bismut.mechanics.bodies.dipole import dipoles, uniform_field
from bismut.mechanics.bodies.elongated import gay_berne
from bismut.mechanics.bodies.fields import gravity, harmonic_trap, soft_box
from bismut.mechanics.bodies.forces import with_forces
from bismut.mechanics.bodies.inventory import Inventory, inventory
from bismut.mechanics.bodies.noises import orientation_noise, pair_noise, translation_noise
from bismut.mechanics.bodies.pair_energy import pair_potential
from bismut.mechanics.bodies.pairs import Placed
from bismut.mechanics.bodies.rigid import rigid_bodies
from bismut.mechanics.bodies.shapes import Body, body, points_of, principal_axes, stack_bodies
from bismut.mechanics.bodies.spheres import soft_spheres
from bismut.mechanics.bodies.spring import springs
from bismut.mechanics.bodies.terms import Noise, Potential
from bismut.repetition import pair_indices

__all__ = [
    "Body",
    "Box",
    "Inventory",
    "Noise",
    "Placed",
    "Potential",
    "body",
    "box_of",
    "dipoles",
    "gay_berne",
    "gravity",
    "harmonic_trap",
    "inventory",
    "orientation_noise",
    "pair_indices",
    "pair_noise",
    "pair_potential",
    "points_of",
    "principal_axes",
    "rigid_bodies",
    "soft_box",
    "soft_spheres",
    "springs",
    "stack_bodies",
    "translation_noise",
    "uniform_field",
    "with_forces",
]
