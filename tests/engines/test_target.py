"""Machine code in memory."""

import ctypes
import weakref

from bismut.engines.native import target

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
