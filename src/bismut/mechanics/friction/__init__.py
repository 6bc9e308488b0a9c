"""Friction and the noise that balances it: the laws, and how they are given."""

from bismut.mechanics.friction.attenuation import cayley, free_diffusion, relaxation
from bismut.mechanics.friction.factory import friction_of, own_noise_friction
from bismut.mechanics.friction.laws import FactoredFriction, Friction, ModalFriction, NoFriction, UniformFriction
