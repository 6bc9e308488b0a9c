"""A wrong seed or number of substeps is an error at once, and its text says what was expected and what was given."""

from inspect import unwrap

import numpy as np
import pytest

from bismut.errors import DomainError
from bismut.noise import Wiener

# The signature checker that the tests install refuses wrong types before the function sees them; a user does not have it.
begin = unwrap(Wiener.__init__)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, None, "7", np.float64(3)], ids=repr)
def test_wrong_seeds(seed):
    with pytest.raises(DomainError, match=r"seed must be a whole number from 0 to 2⁶⁴ − 1, got .*") as caught:
        begin(object.__new__(Wiener), seed)
    assert repr(seed) in str(caught.value)


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1, np.int64(7), np.uint64(2**64 - 1)], ids=repr)
def test_right_seeds(seed):
    low, high = Wiener(seed).seed
    assert (int(high) << 32) + int(low) == int(seed)


@pytest.mark.parametrize("substeps", [0, -3, 1.5, True, None], ids=repr)
def test_wrong_substeps(substeps):
    with pytest.raises(DomainError, match=r"substeps must be a whole number ≥ 1, got .*") as caught:
        begin(object.__new__(Wiener), 1, substeps=substeps)
    assert repr(substeps) in str(caught.value)
