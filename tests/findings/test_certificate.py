"""A run leaves a certificate, at a twentieth of its time: what it was too short to pay for is said, and never passed."""

import json
import time

import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.findings import Report, certify
from bismut.findings.certificate import SHARE

KT = 0.7


@pytest.fixture(scope="module")
def result():
    system = bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 3.0], potential=lambda R: R[2, 2])
    scheme = bm.Langevin(system, KT, rate=1.0)
    return bm.simulate(scheme, scheme.start(jnp.eye(3), temperature=KT), step=0.05, steps=400, trajectories=3000, seed=2, certify=True)


def test_a_short_run_says_what_it_did_not_pay_for(result):
    found = result.certificate
    assert isinstance(found, Report)
    assert (found["failures"].held, found["stays on the space"].held) == (True, True)
    assert {finding.law for finding in found.unmeasured} >= {"structure of a step", "structure along a path", "integrity"}
    assert all("bismut verify" in finding.how for finding in found.unmeasured)


def test_a_longer_run_pays_for_temperatures(result):
    """As if it had taken 30 s: the last states are judged, the structure is not."""
    found = certify(result, 30.0, tolerance=0.2)
    assert not found.failed
    for axis in (1, 2, 3):
        assert abs(found[f"temperature, rotation {axis}"].measured - 1) < 5 * found[f"temperature, rotation {axis}"].error
    assert found["kinetic energy (KS)"].samples == 3000
    assert "structure along a path" in {finding.law for finding in found.unmeasured}


def test_it_costs_a_twentieth(result):
    """Whatever a run took: nothing is begun that the rest of the twentieth does not pay for, and what it pays for is measured."""
    for seconds in (10.0, 60.0, 2000.0):
        clock = time.process_time()
        found = certify(result, seconds, tolerance=0.2)
        spent = time.process_time() - clock
        print(f"{seconds:g} s: {spent:.2f} s, {100 * spent / seconds:.1f} %")
        assert spent < SHARE * seconds
    assert {"symplectic defect", "phase volume", "solve", "engines agree", "temperature"} <= {finding.law for finding in found if finding.known}
    assert found["phase volume"].held


def test_it_lies_in_the_folder(tmp_path):
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q))
    start = scheme.start(jnp.ones(1), velocity=jnp.zeros(1))
    bm.simulate(scheme, start, step=0.05, steps=20, trajectories=3, seed=2, store=tmp_path / "run", certify=True)
    told = json.loads((tmp_path / "run" / "certificate.json").read_text(encoding="utf-8"))
    assert told["schema"] == "bismut.certificate/1"
    assert told["verdict"] == "pass"


def test_a_certificate_never_costs_a_result(result, monkeypatch):
    """Whatever goes wrong while it is made is said in it."""

    def broken(*_):
        raise ZeroDivisionError("of the user's")

    monkeypatch.setattr("bismut.findings.certificate._thermal", broken)
    found = certify(result, 30.0)
    assert "ZeroDivisionError: of the user's" in found["temperature"].how
    assert not found["temperature"].known


def test_equal_runs_have_equal_certificates(result, monkeypatch):
    """On a machine that has no time as well: work is counted, and the clock is not looked at."""
    quiet = certify(result)
    real = time.monotonic
    monkeypatch.setattr("bismut.findings.certificate.time.monotonic", lambda: 1000 * real())
    busy = certify(result)
    told = lambda report: [(f.law, f.verdict, f.how) for f in report]
    assert told(quiet) == told(busy) == told(result.certificate)


def test_work_is_that_of_the_run(result):
    """3000 trajectories of 400 steps, some thousands of operations each, at 5e10 a second."""
    from bismut.findings.certificate import _length, _work

    assert 0.01 < _work(result, _length(result.request)) < 1.0
