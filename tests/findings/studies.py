"""Studies of a scheme from a state at t = 0, as `verify` makes them."""

import bismut as bm
from bismut.findings import Study


def study(scheme, state, step, seed=0, **settings) -> Study:
    return Study(scheme, bm.State(state.q, state.p), step, bm.Wiener(seed), 0.0, **settings)
