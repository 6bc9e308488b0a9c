"""Many rigid bodies: their shapes, how they act on each other, and the noises that drive them."""

from bismut.body_loops import pair_indices
from bismut.mechanics.bodies.bonded import angles, bonded_pairs, bonds, dihedrals
from bismut.mechanics.bodies.box import Box, box_of
from bismut.mechanics.bodies.central import coulomb, lennard_jones, tabulated, weeks_chandler_andersen, yukawa
from bismut.mechanics.bodies.electrostatics import Ewald, ReactionField
from bismut.mechanics.bodies.fields import gravity, harmonic_trap, soft_box, uniform_field
from bismut.mechanics.bodies.forces import with_forces
from bismut.mechanics.bodies.gay_berne import gay_berne
from bismut.mechanics.bodies.inventory import Inventory, inventory
from bismut.mechanics.bodies.noises import orientation_noise, pair_noise, translation_noise
from bismut.mechanics.bodies.order import nematic_order, nematic_tensor, polarisation
from bismut.mechanics.bodies.packing import lattice, random_packing
from bismut.mechanics.bodies.pair_energies import dipoles, pair_potential, soft_spheres, springs
from bismut.mechanics.bodies.pairs import Placed
from bismut.mechanics.bodies.rigid import rigid_bodies
from bismut.mechanics.bodies.shapes import Body, body, points_of, principal_axes, stack_bodies
from bismut.mechanics.bodies.sites import sites
from bismut.mechanics.bodies.terms import Noise, Potential
from bismut.mechanics.bodies.virial import tail_correction
