"""How a system answers: means to a tolerance, transport, free energies, sensitivities, fits."""

from bismut.response.expectation import Expectation, expectation
from bismut.response.fit import Fit, fit
from bismut.response.fit_averages import AveragesFit, fit_averages
from bismut.response.free_energy import FreeEnergy, free_energy, free_energy_of_work
from bismut.response.sensitivity import Sensitivity, sensitivity
from bismut.response.transport import Transport, transport
