"""One step of a variational scheme is symplectic in (q, p):  TᵀΩ₁T = Ω₀,  for any noise; that of a scheme that is not variational is not."""

import pytest

import bismut as bm
from bismut.findings import symplectic_defect
from bismut.mechanics import Scheme
from tests.flows.catalogue import everywhere, increments, once, system, traced
from tests.systems import random_state

STEP = 0.1


def defect(scheme: Scheme, h: float = STEP) -> float:
    state, dW = random_state(scheme.system, 3), increments(scheme.system, h)[0]
    return float(once(lambda z, w: symplectic_defect(scheme, z, h, w))(state, dW))


@everywhere
def test_an_action_gives_a_symplectic_step(space, name):
    """Round-off of a product of three matrices with entries of order one: measured at most 2e−15."""
    assert defect(traced(space, name)) < 1e-11


@pytest.mark.parametrize("space", ["plane", "heavy_top"])
@pytest.mark.parametrize("make", [bm.EulerMaruyama, bm.ImplicitEulerMaruyama])
def test_the_euler_maruyama_methods_are_not_symplectic(space, make):
    assert defect(make(system(space))) > 1e-3


def test_the_runge_kutta_method_is_not_symplectic():
    """Its defect is of order h⁵, so a coarse step is needed to see it."""
    assert defect(bm.RungeKutta4(system("plane")), h=0.5) > 1e-3
