"""Merging the moments of parts gives the moments of the whole, however the parts are cut."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bismut.ensembles.moments import gather, merge


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40), st.integers(1, 39), st.integers(0, 2**40 - 1))
def test_merge_of_parts_is_the_whole(values, cut, bits):
    x = np.array(values)
    counted = np.array([bits >> i & 1 for i in range(len(x))], bool)
    cut = min(cut, len(x) - 1)
    parts = [gather(x[s], counted[s]) for s in (slice(0, cut), slice(cut, None))]
    both = merge(*parts)
    kept = x[counted]
    assert int(both.n) == kept.size
    if kept.size:
        assert np.isclose(both.mean, kept.mean(), rtol=1e-12, atol=1e-9)
        assert np.isclose(both.second, ((kept - kept.mean()) ** 2).sum(), rtol=1e-9, atol=1e-6)
        assert (both.low, both.high) == (kept.min(), kept.max())
