"""What moves: systems, their symmetries and their states."""

from bismut.mechanics.heat import thermalize
from bismut.mechanics.mechanical import mechanical, rigid_bodies
from bismut.mechanics.scheme import Claims, Maxwell, Scheme
from bismut.mechanics.state import Ledger, State, blank_ledger
from bismut.mechanics.symmetry import Symmetry, left_rotation, left_rotations, right_rotation, symmetry, translation, translations
from bismut.mechanics.system import System

__all__ = [
    "Claims",
    "Ledger",
    "Maxwell",
    "Scheme",
    "State",
    "Symmetry",
    "System",
    "blank_ledger",
    "left_rotation",
    "left_rotations",
    "mechanical",
    "right_rotation",
    "rigid_bodies",
    "symmetry",
    "thermalize",
    "translation",
    "translations",
]
