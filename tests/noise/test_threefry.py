"""Threefry-4x32-20 is the published function: known answers of Random123, a bijection of counters, and half of the bits flip with any input bit."""

import jax
import numpy as np
import pytest

from bismut.noise.generator import threefry

KNOWN = {
    "zeros": ("00000000 00000000 00000000 00000000", "00000000 00000000 00000000 00000000", "9c6ca96a e17eae66 fc10ecd4 5256a7d8"),
    "ones": ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff ffffffff ffffffff", "2a881696 57012287 f6c7446e a16a6732"),
    "pi": ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0 082efa98 ec4e6c89", "59cd1dbb b8879579 86b5d00c ac8b6d84"),
}

generate = jax.jit(lambda key, counter: threefry(tuple(key), tuple(counter)))


def four(text):
    return np.array([int(word, 16) for word in text.split()], np.uint32)


@pytest.mark.parametrize("name", KNOWN)
def test_known_answers(name):
    counter, key, answer = map(four, KNOWN[name])
    assert np.array_equal(np.stack(generate(key, counter)), answer)


def test_distinct_counters_give_distinct_blocks():
    """A bijection has no collisions, whichever of the four words counts."""
    n = np.arange(1 << 15, dtype=np.uint32)
    key, zero = four("00000001 00000002 00000003 00000004"), np.zeros_like(n)
    blocks = np.concatenate([np.stack(generate(key, [n if i == j else zero for i in range(4)]), axis=1)[1:] for j in range(4)])
    assert len(np.unique(blocks, axis=0)) == len(blocks)


def test_every_input_bit_flips_half_of_the_output_bits():
    """Number of flipped bits out of 128: mean 64, variance 32. 256 inputs, |z| < 6 at a fixed seed: false alarm 5e−7 in all."""
    cases = 256
    base = np.random.default_rng(1).integers(0, 1 << 32, (8, cases), np.uint32)
    plain = np.stack(generate(base[:4], base[4:]))
    for word in range(8):
        for bit in range(32):
            flipped = base.copy()
            flipped[word] ^= np.uint32(1 << bit)
            distance = np.bitwise_count(plain ^ np.stack(generate(flipped[:4], flipped[4:]))).sum(axis=0)
            assert abs(np.mean(distance) - 64) / np.sqrt(32 / cases) < 6
