"""Maxwell momenta: p ~ N(0, kT M), drawn afresh for each trajectory and the same for the same seed."""

import jax.numpy as jnp
import numpy as np

import bismut as bm
from tests import systems

KT, N = 0.7, 4000


def test_momenta_have_covariance_kT_M():
    """False-alarm rate below 1e−4: six covariances and three variances, each within 4.5 standard errors."""
    scheme = bm.VariationalEuler(systems.vehicle())
    start = scheme.start((jnp.eye(3), jnp.zeros(3)), temperature=KT)
    run = lambda seed: bm.simulate(scheme, start, step=1e-9, steps=1, trajectories=N, seed=seed)
    p = np.asarray(run(1).final.p)
    mass = np.asarray(scheme.system.mass((jnp.eye(3), jnp.zeros(3))))
    spread = np.sqrt((mass**2 + np.outer(np.diag(mass), np.diag(mass))) / N)
    assert (np.abs(p.T @ p / N / KT - mass) < 4.5 * spread).all()
    assert np.array_equal(p, run(1).final.p)
    assert not np.allclose(p, run(2).final.p)
    assert len(np.unique(p[:, 0])) == N


def test_refinement_and_shift_leave_the_start_alone():
    scheme = bm.VariationalEuler(systems.separable())
    start = scheme.start(jnp.zeros(3), temperature=KT)
    first = [
        bm.trajectory(scheme, start, step=0.01, steps=1, path=path).p[0] for path in (bm.Wiener(3), bm.Wiener(3, substeps=2), bm.Wiener(3).shift(9))
    ]
    assert np.array_equal(first[0], first[1])
    assert np.array_equal(first[0], first[2])
