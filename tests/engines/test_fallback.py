"""What the native engine cannot take, XLA runs: nothing that goes wrong while code is written or compiled ends a run in mode "auto"."""

import logging
import pickle

import cloudpickle
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.engines import choice
from bismut.engines.native import engine, target
from bismut.ensembles import request
from bismut.ensembles.plan import rehearse
from bismut.errors import BismutError
from bismut.programs import decomposition
from bismut.programs.operation import lookup
from bismut.store.provenance import identity, run_provenance
from tests.engines.functions import task_of

KEY = jax.random.key(1)
THREE = [jax.ShapeDtypeStruct((3,), np.dtype(float))]


@pytest.fixture(autouse=True)
def _warnings_are_fresh():
    choice._warn.cache_clear()


def _broken(*_, **__):
    raise KeyError("int3")


REFUSED = {
    "keys": (lambda x: x * jax.random.normal(jax.random.key(3)), "random_bits"),
    "constant keys": (lambda x: x * jax.random.uniform(KEY), "random_bits"),
    "16-bit reals": (lambda x: x.astype(jnp.float16) * 2, "convert_element_type of float16 numbers"),
    "complex numbers": (lambda x: jnp.abs(x + 1j), "complex128"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_code_is_a_refusal_and_xla_is_chosen(name, caplog):
    function, words = REFUSED[name]
    for _ in range(2):
        chosen = choice.choose("auto", task_of(function, THREE))
        assert chosen.engine.name == "xla"
        assert words in chosen.why
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert words in caplog.text
    with pytest.raises(BismutError, match=words):
        choice.choose("native", task_of(function, THREE))


def test_what_goes_wrong_in_a_rule_is_a_refusal_that_names_it(monkeypatch):
    monkeypatch.setattr(lookup("sin"), "emit", _broken)
    chosen = choice.choose("auto", task_of(jnp.sin, THREE))
    assert chosen.engine.name == "xla"
    assert "sin of float64[3] (its rule ended with KeyError: 'int3')" in chosen.why
    with pytest.raises(BismutError, match="its rule ended with KeyError"):
        choice.choose("native", task_of(jnp.sin, THREE))


@pytest.mark.parametrize("what", ["trace", "write_advance", "check"])
def test_what_goes_wrong_elsewhere_is_a_refusal(what, monkeypatch):
    monkeypatch.setattr(engine, what, _broken)
    chosen = choice.choose("auto", task_of(jnp.sin, THREE))
    assert chosen.engine.name == "xla"
    assert "KeyError" in chosen.why


def test_where_the_compiler_fails_xla_runs(monkeypatch, caplog):
    system = bm.mechanical(bm.Euclidean(2), mass=1.0, potential=lambda q: q @ q * jnp.cos(q[0]) / 3)
    scheme = bm.Verlet(system)
    monkeypatch.setattr(target, "Machine", _broken)
    monkeypatch.setattr(engine, "Machine", _broken)
    run = lambda mode: bm.simulate(scheme, scheme.start(jnp.ones(2), momentum=jnp.zeros(2)), step=0.1, steps=3, trajectories=2, seed=1, mode=mode)
    found, expected = run("auto"), run("xla")
    assert "LLVM could not compile it" in caplog.text
    np.testing.assert_array_equal(found.energy.mean, expected.energy.mean)
    reason = "LLVM could not compile it (KeyError: 'int3')"
    for result in (found, run("auto")):
        assert (result.provenance.mode, result.provenance.machine) == ("xla", expected.provenance.machine)
        assert result.provenance.note == f"computed by XLA in place of the native engine, because {reason}"
    with pytest.raises(KeyError):
        run("native")


@pytest.mark.parametrize("say", [identity, lambda asked: run_provenance(asked, "")["identity"]], ids=["identity", "provenance"])
def test_where_the_compiler_fails_a_run_is_known_as_that_of_xla(say, monkeypatch):
    system = bm.mechanical(bm.Euclidean(2), mass=1.0, potential=lambda q: q @ q * jnp.sin(q[0]) / 5)
    scheme = bm.Verlet(system)
    monkeypatch.setattr(engine, "Machine", _broken)
    ask = lambda mode: request(scheme, scheme.start(jnp.ones(2), momentum=jnp.zeros(2)), step=0.1, steps=3, trajectories=2, seed=1, mode=mode)
    assert say(ask("auto")) == say(ask("auto")) == say(ask("xla"))
    assert pickle.loads(cloudpickle.dumps(ask("auto"))).mode == "xla"
    planned = rehearse(ask("auto"))
    assert planned.engine == "xla"
    assert "LLVM could not compile it" in planned.why


EMPTY = {
    "cumlogsumexp": jax.lax.cumlogsumexp,
    "eigh": lambda none: jnp.linalg.eigh(jnp.outer(none, none))[0],
    "tridiagonal_solve": lambda none: jax.lax.linalg.tridiagonal_solve(none, none, none, none[:, None]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_what_a_decomposition_does_not_foresee_xla_runs(name):
    """An array of no elements adds nothing, whoever computes."""
    run = lambda potential: _run(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=potential))
    found, expected = run(lambda q: q @ q + jnp.sum(EMPTY[name](q[1:]))), run(lambda q: q @ q)
    np.testing.assert_allclose(found.energy.mean, expected.energy.mean, rtol=1e-14)


def _run(system):
    scheme = bm.Verlet(system)
    return bm.simulate(scheme, scheme.start(jnp.ones(1), momentum=jnp.zeros(1)), step=0.1, steps=2, trajectories=2, seed=1)


def test_what_goes_wrong_in_a_decomposition_is_a_refusal_that_names_it(monkeypatch):
    monkeypatch.setattr(lookup("cumlogsumexp"), "decompose", _broken)
    decomposition._traced.cache_clear()
    chosen = choice.choose("auto", task_of(jax.lax.cumlogsumexp, THREE))
    assert chosen.engine.name == "xla"
    assert "cumlogsumexp of float64[3] (its decomposition ended with KeyError: 'int3')" in chosen.why


def test_threads_that_compile_one_task_leave_each_other_its_code(monkeypatch):
    """While one compiles a task, another thread compiles it too: neither finds code without text."""
    lowered, compiled, texts = engine.Native().lower(task_of(jnp.sin, THREE)), engine.NativeProgram, []

    def meanwhile(task, written):
        texts.append(written.text)
        if len(texts) == 1:
            lowered.compile()
        return compiled(task, written)

    monkeypatch.setattr(engine, "NativeProgram", meanwhile)
    lowered.compile()
    assert len(texts) == 2
    assert all(texts)


def test_modules_with_keys_and_convolutions_run():
    class Net(eqx.Module):
        drop: eqx.nn.Dropout
        cell: eqx.nn.GRUCell
        filter: eqx.nn.Conv1d

        def __call__(self, q):
            hidden = self.cell(self.drop(q, key=jax.random.key(2)), jnp.zeros(4))
            return jnp.sum(self.filter(hidden[None]) ** 2)

    a, b = jax.random.split(jax.random.key(0))
    net = Net(eqx.nn.Dropout(0.3), eqx.nn.GRUCell(3, 4, key=a), eqx.nn.Conv1d(1, 2, 2, key=b))
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(3), mass=1.0, potential=net))
    result = bm.simulate(scheme, scheme.start(jnp.ones(3), momentum=jnp.zeros(3)), step=0.1, steps=2, trajectories=2, seed=1)
    assert np.isfinite(result.energy.mean).all()


def test_what_prints_is_run_by_xla_and_says_so(capfd):
    def potential(q):
        jax.debug.print("q = {}", q[0])
        return q @ q

    result = _run(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=potential))
    jax.effects_barrier()
    assert result.provenance.mode == "xla"
    assert result.provenance.note == "computed by XLA in place of the native engine, because there is no machine code for jax.debug.print"
    assert result.provenance.note in str(result)
    assert "q = 1.0" in capfd.readouterr().out


def test_a_random_key_may_be_a_parameter():
    potential = lambda q, parameters: q @ q * jax.random.uniform(parameters["key"])
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(2), mass=1.0, potential=potential, parameters={"key": KEY}))
    result = bm.simulate(scheme, scheme.start(jnp.ones(2), momentum=jnp.zeros(2)), step=0.1, steps=2, trajectories=2, seed=1)
    assert np.isfinite(result.energy.mean).all()
