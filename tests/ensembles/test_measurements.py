"""A run inside a measurement is complete, or the measurement is interrupted: half a run would be taken for one of half the length."""

import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.ensembles import run
from bismut.findings import certificate

system = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.sum(q**4) / 4)
scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
start = scheme.start(jnp.zeros(1), temperature=1.0)
RUN = {"step": 0.05, "steps": 400, "trajectories": 40, "seed": 1}


@pytest.fixture
def stopped(monkeypatch):
    """Whoever runs anything is asked to stop by SIGTERM as soon as a part of it is done."""
    asked = iter([False] * 3)

    def cause(self):
        return "" if next(asked, True) is False else "SIGTERM"

    monkeypatch.setattr(run.Stop, "cause", property(cause, lambda self, value: None), raising=False)
    monkeypatch.setattr(run.Stop, "asked", property(lambda self: bool(self.cause)))


@pytest.mark.parametrize(
    "measure",
    [
        lambda: bm.transport(scheme, start, **RUN),
        lambda: bm.expectation(scheme, start, of=lambda state: state.q[0] ** 2, time=1.0, tolerance=0.01),
        lambda: bm.verify(scheme, start, step=0.05, order=False),
    ],
    ids=["transport", "expectation", "verify"],
)
def test_an_interrupt_ends_a_measurement(measure, stopped):
    with pytest.raises(KeyboardInterrupt):
        measure()


def test_an_interrupted_certificate_leaves_the_run_as_it_is(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt(15)

    monkeypatch.setattr(certificate, "_thermal", interrupted)
    report = certificate.certify(bm.simulate(scheme, start, **RUN), seconds=3600.0)
    assert "interrupted" in str(report["temperature"])
    assert report["temperature"].verdict.value == "unmeasured"
    assert sum("interrupted" in str(finding) for finding in report) == 5  # and so are the four that would have come
