"""A log-density in, draws out: domains, starts, adaptation, exact kernels, diagnostics."""

from bismut.samplers.charts import Positive, PositiveDefinite, Real, Simplex
from bismut.samplers.domain import Domain
from bismut.samplers.draws import Draws
from bismut.samplers.kernel import Kernel, KernelInfo, KernelState, kernel, malt
from bismut.samplers.sample import sample
from bismut.samplers.surfaces import SO, SU, Sphere, Stiefel
