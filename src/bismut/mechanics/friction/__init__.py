"""Friction and the noise that balances it: the laws, and how they are given."""

from bismut.mechanics.friction.choosing import friction_of, own
from bismut.mechanics.friction.laws import Factors, Friction, Modes, Nothing, Uniform, relaxation

__all__ = ["Factors", "Friction", "Modes", "Nothing", "Uniform", "friction_of", "own", "relaxation"]
