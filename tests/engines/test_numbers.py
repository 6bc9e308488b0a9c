"""Elementary functions of constants: the bits that machine code gives in plain arithmetic, so that NumPy's choice of code decides nothing."""

import numpy as np
import pytest

from bismut.programs.codegen.elementary import FORMULAS
from bismut.programs.codegen.elementary.numbers import elementary
from tests.engines.elementary import INPUTS, compiled, points

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, 3, 1e300, -1e300, 5e-324, -5e-324, 1e22, 2.0**30, 2.0**20, 710, -745])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FORMULAS)
def test_numbers_are_those_of_machine_code(name, dtype):
    special = [axis.ravel() for axis in np.meshgrid(*[SPECIAL] * INPUTS.get(name, 1))]
    with np.errstate(over="ignore"):
        inputs = [np.concatenate(both).astype(dtype) for both in zip(points(name, 60), special, strict=True)]
    by_code, at_once = compiled(name, 2, False, dtype)(*inputs), elementary(name, *inputs)
    assert at_once.dtype == dtype
    same = (by_code.view(f"u{by_code.itemsize}") == at_once.view(f"u{by_code.itemsize}")) | (np.isnan(by_code) & np.isnan(at_once))
    assert same.all(), [x[~same][:3] for x in inputs]


def test_shapes_and_scalars_are_as_numpy_has_them():
    assert isinstance(elementary("exp", np.float64(1.0)), np.float64)
    assert abs(elementary("exp", 1.0) - np.e) <= 2 * np.spacing(np.e)
    assert elementary("pow", np.ones((3, 1)), np.ones((1, 2))).shape == (3, 2)
    assert elementary("sin", np.zeros((0, 2), np.float32)).shape == (0, 2)
    assert elementary("log", 1) == 0.0
