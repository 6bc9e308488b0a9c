"""Machine code in memory."""

import ctypes
import weakref

import jax
import jax.numpy as jnp
import pytest

from bismut.engines.native import engine, target
from tests.engines.functions import task_of

_DOUBLED = """
define void @doubled(double* %x) {
  %a = load double, double* %x
  %b = fadd double %a, %a
  store double %b, double* %x
  ret void
}
"""


def test_a_machine_that_is_gone_takes_nothing_from_the_next():
    for number in range(8):
        x, machine = ctypes.c_double(number), target.Machine(_DOUBLED)
        gone = weakref.ref(machine)
        function = machine.function("doubled", ctypes.POINTER(ctypes.c_double))
        function(ctypes.byref(x))
        assert x.value == 2 * number
        del machine
        assert gone()
        del function
        assert gone() is None


@pytest.mark.parametrize(
    ("triple", "features", "fused"),
    [
        ("arm64-apple-darwin24.1.0", {}, True),  # where LLVM may find no features
        ("aarch64-unknown-linux-gnu", {"neon": True}, True),
        ("armv7l-unknown-linux-gnueabihf", {"neon": True}, False),
        ("x86_64-unknown-linux-gnu", {"fma": True, "avx2": True}, True),
        ("x86_64-unknown-linux-gnu", {}, False),
    ],
)
def test_every_64_bit_arm_fuses_products_and_sums(triple, features, fused, monkeypatch):
    """By the name of the machine, and not by what LLVM finds out about it."""
    monkeypatch.delenv("BISMUT_PROCESSOR", raising=False)
    monkeypatch.setattr(target.llvm, "get_default_triple", lambda: triple)
    monkeypatch.setattr(target.llvm, "get_host_cpu_features", lambda: target.llvm.FeatureMap(features))
    monkeypatch.setattr(target, "_host", target._host.__wrapped__)
    assert target.fuses() == fused
    assert target.chosen_arithmetic(None) == ("fused" if fused else "plain")


def test_the_text_of_a_program_is_forgotten_once_it_is_compiled(monkeypatch):
    """Lowered tasks are remembered by the dozen, each with megabytes of text; a second compilation writes it anew."""
    written, write = [], engine.write
    monkeypatch.setattr(engine, "write", lambda *arguments: written.append(write(*arguments)) or written[-1])
    lowered = engine.Native().lower(task_of(jnp.sin, [jax.ShapeDtypeStruct((3,), float)]))
    assert "define" in written[0].text
    assert lowered.operations > 0
    for count in (1, 2, 3):
        lowered.compile()
        assert len(written) == count
