"""What follows from an action: steps, momenta and whole paths; and methods to compare with."""

from bismut.flows import kernel
from bismut.flows.comparison import EulerMaruyama, ImplicitEulerMaruyama, RungeKutta4
from bismut.flows.flow import Advances, Flow, flow, remember, resume
from bismut.flows.langevin import Langevin
from bismut.flows.metropolised import Metropolised
from bismut.flows.path import action_differential, action_sum, discrete_symplectic_form, end_momenta, euler_lagrange, noether_momenta
from bismut.flows.reduced import Reduced
from bismut.flows.splitting import ABOBA, BAOAB, GLA, OBABO
from bismut.flows.variational import Solve, Structure, Variational

__all__ = [
    "ABOBA",
    "BAOAB",
    "GLA",
    "OBABO",
    "Advances",
    "EulerMaruyama",
    "Flow",
    "ImplicitEulerMaruyama",
    "Langevin",
    "Metropolised",
    "Reduced",
    "RungeKutta4",
    "Solve",
    "Structure",
    "Variational",
    "action_differential",
    "action_sum",
    "discrete_symplectic_form",
    "end_momenta",
    "euler_lagrange",
    "flow",
    "kernel",
    "noether_momenta",
    "remember",
    "resume",
]
