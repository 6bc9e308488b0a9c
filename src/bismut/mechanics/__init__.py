"""What moves: systems, their symmetries and their states."""

from bismut.mechanics.bodies import (
    Body,
    Box,
    Inventory,
    Noise,
    Placed,
    Potential,
    body,
    box_of,
    dipoles,
    gay_berne,
    gravity,
    harmonic_trap,
    inventory,
    orientation_noise,
    pair_indices,
    pair_noise,
    pair_potential,
    points_of,
    principal_axes,
    rigid_bodies,
    soft_box,
    soft_spheres,
    springs,
    stack_bodies,
    translation_noise,
    uniform_field,
    with_forces,
)
from bismut.mechanics.covectors import in_space
from bismut.mechanics.heat import thermalize
from bismut.mechanics.lie_poisson import LiePoisson
from bismut.mechanics.mechanical import mechanical
from bismut.mechanics.scheme import Claims, Scheme
from bismut.mechanics.start import Maxwell, Start, start_on, time_of
from bismut.mechanics.state import Ledger, State, blank_ledger
from bismut.mechanics.symmetry import Symmetry, left_rotation, left_rotations, right_rotation, symmetry, translation, translations
from bismut.mechanics.system import System
