"""What follows from an action: steps, momenta and whole paths; and methods to compare with."""

from bismut.flows import kernel
from bismut.flows.baselines import EulerMaruyama, ImplicitEulerMaruyama, RungeKutta4
from bismut.flows.brownian import Brownian
from bismut.flows.discrete_path import action_differential, action_sum, discrete_symplectic_form, end_momenta, euler_lagrange, noether_momenta
from bismut.flows.flow import Advances, Flow, flow, init_cache, step_with_cache
from bismut.flows.isobaric import Isobaric
from bismut.flows.langevin import Langevin
from bismut.flows.metropolised import Metropolised
from bismut.flows.reduced import Reduced
from bismut.flows.splitting import ABOBA, BAOAB, GJI, GJII, GLA, OBABO, WordSplitting
from bismut.flows.variational import Solve, StepEquation, VariationalFlow
