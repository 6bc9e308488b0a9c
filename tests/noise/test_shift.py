"""Shifting a path is a flow:  θ_s θ_t = θ_{s+t},  and step k of θ_s W is step k + s of W, bit for bit."""

from inspect import unwrap

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bismut.errors import DomainError
from bismut.noise import Wiener

from .paths import SEED, increments

FEW, STEPS = np.arange(8), np.arange(8, dtype=np.uint64)

shifts = st.one_of(st.integers(-9, 9), st.integers(-(2**33), 0), st.integers(2**32 - 9, 2**32 + 9), st.integers(0, 2**60))
examples = settings(derandomize=True, database=None, deadline=None, max_examples=30, phases=(Phase.explicit, Phase.generate))
paths = pytest.mark.parametrize("path", [Wiener(SEED), Wiener(SEED, substeps=3)], ids=["plain", "refined"])


@paths
@examples
@given(s=shifts)
def test_the_shifted_path_is_seen_from_step_s_on(path, s):
    seen = increments(path.shift(s), FEW, STEPS, 0.1)
    assert np.array_equal(seen, increments(path, FEW, STEPS + np.uint64(s % 2**64), 0.1))


@paths
@examples
@given(s=shifts, t=shifts)
def test_shifts_add(path, s, t):
    twice, once = path.shift(s).shift(t), path.shift(s + t)
    assert np.array_equal(np.stack(twice.offset), np.stack(once.offset))
    assert np.array_equal(increments(twice, FEW, STEPS, 0.1), increments(once, FEW, STEPS, 0.1))


@paths
@examples
@given(s=shifts)
def test_a_shift_back_undoes_a_shift(path, s):
    """θ is a group: θ_{−s} θ_s = 1."""
    back = path.shift(s).shift(-s)
    assert np.array_equal(np.stack(back.offset), np.stack(path.offset))
    assert path.shift(s).shifted_by == s


def test_no_shift_is_the_path_itself():
    assert np.array_equal(increments(Wiener(SEED).shift(0), FEW, STEPS), increments(Wiener(SEED), FEW, STEPS))


@pytest.mark.parametrize("steps", [True, 1.5])
def test_wrong_shifts_are_refused(steps):
    with pytest.raises(DomainError):
        unwrap(Wiener.shift)(Wiener(SEED), steps)  # without the signature checker of the tests
