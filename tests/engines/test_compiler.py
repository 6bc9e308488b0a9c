"""The compiler agrees with NumPy, and where it does not, nothing runs."""

import re
import time
from importlib.metadata import requires

import jax
import pytest
from packaging.requirements import Requirement

from bismut.engines import xla_selfcheck
from bismut.errors import CompilerError


@pytest.mark.parametrize("double", [True, False])
def test_compiled_sums_over_many_rows_are_those_of_numpy(double):
    with jax.enable_x64(double):
        assert xla_selfcheck.wrong_rows() == 0


def test_a_compiler_that_is_wrong_is_refused_with_the_remedy(monkeypatch):
    xla_selfcheck.check_compiler.cache_clear()
    monkeypatch.setattr(xla_selfcheck, "wrong_rows", lambda: 3616)
    for _ in range(2):  # the refusal is not forgotten after the first time
        with pytest.raises(CompilerError, match=r"3616 of 40000 rows .* pip install") as error:
            xla_selfcheck.check_compiler()
    # What is advised is what the package itself accepts, so the advice cannot lead to a version that pip then refuses.
    advised = Requirement(re.search(r"pip install '(.*?)'", str(error.value)).group(1))
    (accepted,) = (line for line in map(Requirement, requires("bismut")) if line.name == "jax")
    assert (advised.name, advised.specifier) == (accepted.name, accepted.specifier)
    assert not advised.specifier.contains("0.10.2")


def test_the_check_is_made_once_in_a_process(monkeypatch):
    xla_selfcheck.check_compiler.cache_clear()
    calls = []
    monkeypatch.setattr(xla_selfcheck, "wrong_rows", lambda: calls.append(1) or 0)
    for _ in range(3):
        xla_selfcheck.check_compiler()
    assert len(calls) == 1


def test_the_check_can_be_made_while_something_is_traced():
    xla_selfcheck.check_compiler.cache_clear()
    assert jax.jit(lambda x: (xla_selfcheck.check_compiler(), x)[1])(2.0) == 2.0


def test_the_check_is_cheap():
    begin = time.perf_counter()
    xla_selfcheck.wrong_rows()
    assert time.perf_counter() - begin < 5.0  # 0.07 s alone; five seconds on a machine that does much else
