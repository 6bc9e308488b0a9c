"""Different seeds, streams, trajectories, steps and channels have different numbers, and 64-bit counters carry beyond 2³²."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bismut.noise import Stream, Wiener, advance, counter
from bismut.noise.wiener import _times

from .paths import SEED, increments, sample

FEW = np.arange(8)
FAR = [0, 1 << 32, 1 << 33, 1 << 34, 1 << 35, 1 << 40, (1 << 63) + (1 << 31)]

whole = st.integers(0, 2**64 - 1)
examples = settings(derandomize=True, database=None, deadline=None, max_examples=50, phases=(Phase.explicit, Phase.generate))


def number(index):
    low, high = index
    return (int(high) << 32) + int(low)


def assert_all_differ(arrays):
    values = np.concatenate([np.ravel(array) for array in arrays])
    assert len(np.unique(values)) == len(values)


def test_two_million_numbers_are_distinct():
    """Chance of a coincidence of two doubles: about 1e−3, at a fixed seed."""
    assert_all_differ([sample()])


def test_streams():
    assert_all_differ([increments(Wiener(SEED), FEW, FEW, stream=stream) for stream in Stream])


@pytest.mark.parametrize("first", [0, 1, (1 << 32) - 2, 1 << 40])
def test_neighbouring_seeds(first):
    assert_all_differ([increments(Wiener(first + n), FEW, FEW) for n in range(4)])


def test_seeds_that_share_a_word():
    assert_all_differ([increments(Wiener(seed), FEW, FEW) for seed in (5, 5 + (1 << 32), 5 << 32, (5 << 32) + 5, (1 << 64) - 1)])


def test_far_trajectories():
    assert_all_differ([increments(Wiener(SEED), FEW.astype(np.uint64) + np.uint64(first), FEW) for first in FAR])


def test_far_steps():
    assert_all_differ([increments(Wiener(SEED), FEW, FEW.astype(np.uint64) + np.uint64(first)) for first in FAR])


def test_trajectory_and_step_are_not_exchangeable():
    square = increments(Wiener(SEED), FEW, FEW)
    assert not np.any(square == np.swapaxes(square, 0, 1), where=~np.eye(len(FEW), dtype=bool)[..., None])


@examples
@given(index=whole)
def test_words_are_the_index(index):
    assert number(counter(index)) == index


@examples
@given(index=whole, by=st.integers(0, 2**32 - 1))
def test_advance_carries(index, by):
    assert number(advance(counter(index), by)) == (index + by) % 2**64


@pytest.mark.parametrize("index", [(1 << 32) - 1, (1 << 40) - 1, (1 << 64) - 1])
def test_advance_over_a_border(index):
    assert number(advance(counter(index), 1)) == (index + 1) % 2**64


@examples
@given(index=whole, n=st.integers(1, 2**32 - 1))
def test_multiplication_of_an_index(index, n):
    assert number(_times(counter(index), n)) == index * n % 2**64
