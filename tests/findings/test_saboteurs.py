"""Every detector catches its saboteur, and lets the faultless pass.

Where chance has a say, a report on something faultless is called faulty once in a thousand; seeds are fixed.
"""

import functools
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.consistency import curl, derivatives, right_action
from bismut.findings.equilibrium_report import equilibrium
from bismut.findings.integrity import integrity
from bismut.findings.order_checks import drift, orders, weak_order
from bismut.findings.path_checks import along_path, one_step
from bismut.findings.statistics import holm_verdicts
from bismut.mechanics import State
from tests.findings import saboteurs
from tests.findings.studies import study
from tests.systems import random_state

pytestmark = pytest.mark.usefixtures("compiled_quickly")
SEED, KT = 3, 0.7


def verdicts(findings) -> dict[str, str]:
    return {finding.law: finding.verdict.value for finding in holm_verdicts(findings)}


def failed(findings) -> set[str]:
    return {law for law, verdict in verdicts(findings).items() if verdict == "fail"}


# Structure.


def test_the_sign_of_the_misprint():
    body = bm.mechanical(bm.SO3(), mass=saboteurs.INERTIA)
    state = State(jnp.eye(3), jnp.array([0.6, 1.0, -0.8]))
    assert "symplectic defect" in failed(one_step(study(saboteurs.Misprint(body), state, 0.1, SEED)))


def test_a_runge_kutta_method_called_symplectic():
    well = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.cosh(q[0]))
    state = State(jnp.array([0.4]), jnp.array([1.0]))
    liar = saboteurs.SymplecticRungeKutta(well)
    assert failed(one_step(study(liar, state, 0.3, SEED))) == {"symplectic defect", "phase volume"}
    assert "energy drift" in failed(drift(study(liar, state, 0.5, SEED)))
    assert verdicts(drift(study(bm.Verlet(well), state, 0.5, SEED))) == {"energy drift": "pass", "modified energy": "pass"}


def test_two_per_cent_of_the_friction_missing():
    well = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.cosh(q[0]))
    state = State(jnp.array([0.4]), jnp.array([1.0]))
    for kind, wrong in ((bm.Langevin, set()), (saboteurs.LazyFriction, {"phase volume"})):
        assert failed(one_step(study(kind(well, KT, 1.3), state, 0.1, SEED))) == wrong


def test_a_symmetry_broken_by_a_millionth_is_called_out():
    turn = {"turn": bm.left_rotation(1.0)}
    state = State(jnp.array([0.4, 0.2]), jnp.array([0.1, 0.6]))

    def words(broken):
        system = bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.5 * q @ q + broken * q[0], symmetries=turn)
        scheme = bm.Verlet(system)
        found = {f.law: f for f in along_path(study(scheme, state, 0.05, SEED))}
        return found["momentum map 'turn'"]

    assert "no symmetry: it changes L" in words(1e-6).how
    assert words(0.0).verdict.value == "pass"


@pytest.mark.slow
def test_constraints_left_at_a_tolerance():
    sphere = bm.mechanical(bm.Euclidean(3), potential=lambda q: q[2], constraint=lambda q: jnp.array([q @ q - 1]))
    state = State(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 0.3, 0.2]))
    for kind, held in ((bm.Langevin, "pass"), (saboteurs.Sloppy, "fail")):
        scheme = kind(sphere, KT, rate=1.0)
        assert verdicts(along_path(study(scheme, state, 0.02, SEED)))["constraints"] == held


# Accuracy.


def test_noise_at_the_wrong_node():
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.cosh(q[0]), noise=lambda q: jnp.sin(2 * q))
    state = State(jnp.array([0.4]), jnp.array([1.0]))
    weak = lambda splitting: verdicts([weak_order(study(bm.Langevin(system, KT, 0.5, splitting), state, 0.05))])["weak order"]
    assert weak(bm.ABOBA) == "pass"
    assert weak(saboteurs.TwoNodes("ABOBA")) == "fail"


def test_convergence_to_something_else():
    well = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.cosh(q[0]))
    state = State(jnp.array([0.4]), jnp.array([1.0]))
    assert failed(orders(study(bm.EulerMaruyama(well), state, 0.02, SEED))) == set()
    assert "right limit" in failed(orders(study(saboteurs.WrongLimit(well), state, 0.02, SEED)))


# What was written by hand.


def started(scheme, count=2):
    return study(scheme, State(0.7 * jnp.ones(count), 0.5 * jnp.ones(count)), 0.02, SEED)


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, set()), (1.1, {"derivatives of L"}), (-1.0, {"derivatives of L"})])
def test_a_gradient_off_by_a_factor(factor, wrong):
    assert failed(derivatives(started(bm.Verlet(saboteurs.with_gradient(factor))))) == wrong


def test_torques_in_the_wrong_frame():
    system = saboteurs.torque_in_the_wrong_frame()
    assert failed(derivatives(study(bm.Verlet(system), random_state(system), 0.02, SEED))) == {"derivatives of L"}


def test_a_force_with_a_curl():
    bath = lambda system: bm.Langevin(system, KT, 1.0)
    assert failed(curl(started(bath(saboteurs.curled())))) == {"force without a curl"}
    straight = bm.mechanical(bm.Euclidean(2), force=lambda q, v: -jnp.array([q[0] * q[1] ** 2, q[0] ** 2 * q[1]]))
    assert verdicts(curl(started(bath(straight)))) == {"force without a curl": "pass"}


@pytest.mark.parametrize(
    ("potential", "noise", "wrong"), [(1.0, 1.0, set()), (0.8, 1.0, {"S_d: its Lagrangian"}), (1.0, 0.5, {"S_d: its noise"})], ids=str
)
def test_a_discrete_lagrangian_that_is_not_its_systems(potential, noise, wrong):
    assert failed(right_action(started(saboteurs.discrete(potential, noise)))) == wrong


def test_functions_that_are_not_functions():
    """A potential that changes with every look is not the same program twice."""
    state = State(jnp.array([0.4]), jnp.array([1.0]))
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=saboteurs.Counting()))
    assert failed(integrity(study(scheme, state, 0.1, SEED))) & {"engines agree", "compilers agree"}
    honest = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q))
    assert set(verdicts(integrity(study(honest, state, 0.1, SEED))).values()) == {"pass"}


# Equilibrium.


@functools.cache
def well(count=1) -> bm.System:
    return bm.mechanical(bm.Euclidean(count), potential=lambda q: 0.5 * q @ q + 0.25 * jnp.sum(q**4))


def measured(scheme, q, **more):
    return equilibrium(study(scheme, State(q, jnp.zeros(scheme.space.dim)), 0.1, SEED, budget=60.0, tolerance=0.03, **more))


def test_a_faultless_bath_passes():
    found = measured(bm.Langevin(well(), KT, 1.0), jnp.zeros(1), observables={"q⁴": lambda s: s.q[0] ** 4})
    assert {law: verdict for law, verdict in verdicts(found).items() if verdict not in ("pass", "fact")} == {}
    assert {"temperature", "kinetic energy (KS)", "kinetic energy (AD)", "configurational temperature", "⟨U⟩/kT", "⟨q⁴⟩"} <= set(verdicts(found))
    assert min(finding.samples for finding in found if finding.law == "temperature") > 20_000


@pytest.mark.parametrize("kind", [saboteurs.Hot, pytest.param(saboteurs.Clipped, marks=pytest.mark.slow)])
def test_a_bath_at_the_wrong_temperature(kind):
    assert {"temperature", "configurational temperature", "⟨U⟩/kT"} <= failed(measured(kind(well(), KT, 1.0), jnp.zeros(1)))


@pytest.mark.slow
def test_a_gradient_off_by_a_tenth_is_seen_in_equilibrium_too():
    """Momenta know nothing of it, positions do."""
    found = failed(measured(bm.Langevin(saboteurs.with_gradient(1.1), KT, 1.0), jnp.zeros(2)))
    assert "⟨U⟩/kT" in found
    assert not any(law.startswith("temperature") for law in found)


@pytest.mark.slow
def test_rotation_too_cold():
    """0.83 kT in rotation and 1 in translation: equipartition fails, and the axes are named."""
    system = bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 3.0], potential=lambda R: R[2, 2])
    scheme = saboteurs.ColdRotation(system, KT, rate=1.0)
    found = {f.law: f for f in holm_verdicts(equilibrium(study(scheme, State(jnp.eye(3), jnp.zeros(3)), 0.05, SEED, budget=60.0, tolerance=0.03)))}
    for axis in (1, 2, 3):
        one = found[f"temperature, rotation {axis}"]
        assert one.verdict.value == "fail"
        assert abs(one.measured - 0.83) < 5 * one.error


def test_too_few_samples_are_no_pass():
    from bismut.findings.equilibrium import temperatures

    few = np.random.default_rng(0).chisquare(1, size=(2, 64, 1))

    assert verdicts(temperatures(few, ["coordinate 1"], 0.02)) == {"temperature": "undecided"}
    report = bm.findings.Report("few", None, holm_verdicts(temperatures(few, ["coordinate 1"], 0.02)), 1e-3)
    assert not report.ok
    assert report.exit_code == 3
    assert bm.findings.Report.from_json(report.to_json()).undecided == tuple(replace(f) for f in report.undecided)
