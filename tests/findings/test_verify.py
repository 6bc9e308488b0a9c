"""`verify` passes what is true and fails what is not."""

import jax
import jax.numpy as jnp

import bismut as bm
from bismut.mechanics import Claims
from tests import systems


class Liar(bm.EulerMaruyama):
    """Euler–Maruyama with claims it cannot keep."""

    claims = Claims(order=2, symplectic=True, momentum_maps=True)


def test_true_claims_hold():
    scheme = bm.VariationalEuler(systems.heavy_top())
    report = bm.verify(scheme, systems.random_state(scheme.system), step=0.02)
    assert report.ok
    assert {finding.law for finding in report.findings} == {
        "symplectic defect",
        "phase volume",
        "momentum map 'vertical'",
        "stays on the space",
        "action stationary",
        "solve",
        "own adjoint",
        "reversible",
        "derivatives of L",
        "derivatives of the noise",
        "order",
        "right limit",
        "strong order",
        "weak order",
        "energy drift",
        "modified energy",
        "engines agree",
        "compilers agree",
        "a cut run goes on",
        "noise drawn",
    }
    assert "every claim held" in str(report)


def test_false_claims_fail():
    scheme = Liar(systems.heavy_top())
    report = bm.verify(scheme, systems.random_state(scheme.system), step=0.05, integrity=False)
    assert not report.ok
    failed = {finding.law for finding in report.findings if finding.held is False}
    assert failed - {"modified energy"} == {"symplectic defect", "phase volume", "momentum map 'vertical'", "order", "energy drift"}
    assert report.exit_code == 1
    assert "A CLAIM FAILED" in str(report)


def test_broken_symmetry_is_not_a_failure():
    """A momentum map of something that is no symmetry changes; that is a fact about the system, not a failure of the scheme."""
    system = bm.mechanical(
        bm.SO3(), mass=[1.0, 2.0, 2.5], potential=lambda R: R[0, 2], noise=lambda R: R[1], symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))}
    )
    scheme = bm.VariationalEuler(system)
    report = bm.verify(scheme, systems.random_state(system), step=0.02, order=False)
    assert report.ok
    finding = report["momentum map 'vertical'"]
    assert finding.held is None
    assert finding.measured > 1e-3


def test_explain_says_how_the_step_is_solved():
    explicit = bm.explain(bm.Verlet(systems.separable()))
    assert "linear, one exact correction" in explicit
    bodies = bm.explain(bm.VariationalEuler(systems.bodies(3)))
    assert "Newton" in bodies
    assert "3 of size 3" in bodies


def test_explain_knows_an_action_that_belongs_to_no_module():
    """As one defined in a notebook cell or by exec."""
    names = {"bm": bm, "__name__": "nowhere"}
    exec("class Own(bm.VariationalEuler):\n    pass", names)
    assert "Own on Euclidean(3)" in bm.explain(names["Own"](systems.separable()))


def overdamped(true: float, **settings):
    """A report on a body with three mobilities in a field, which moves at kT = `true`."""
    system = bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5], potential=lambda R: R[0, 2] + 0.5 * R[1, 1])
    scheme = bm.Brownian(system, temperature=true, mobility=jnp.array([1.0, 2.0, 3.0]))
    return bm.verify(scheme, scheme.start(bm.SO3().random(jax.random.key(1))), step=0.05, budget=1, **settings)


def test_overdamped_motion_keeps_its_claims():
    """Momenta are fresh at each step, so nothing of flows is claimed, and averages are those of exp(−U/kT)."""
    report = overdamped(0.7)
    assert report.ok
    for law in ("stays on the space", "derivatives of L", "engines agree", "compilers agree", "a cut run goes on", "⟨U⟩/kT"):
        assert report[law].held is True, law
    assert report["symplectic defect"].held is None


def test_overdamped_motion_of_the_wrong_temperature_is_found():
    """Averages of places tell, here those of twice the kT that the motion is said to have."""
    report = overdamped(1.4, temperature=0.7, order=False)
    assert not report.ok
    assert report["⟨U⟩/kT"].held is False
