"""Random points of a compact group are uniform: traces have the moments of Haar measure. Each |z| < 5 at a fixed seed: false alarm 6e−7.

    SO(2): E tr^n = C(n, n/2) for even n, else 0        SO(3): E tr^n = 1, 0, 1, 1, 3, 6, 15, 36, 91 (Riordan numbers)
"""

import jax
import numpy as np
import pytest

from bismut.spaces import SE2, SE3, SO2, SO3, Circle

COUNT = 40_000
PLANE = (1, 0, 2, 0, 6, 0, 20, 0, 70)
SPACE = (1, 0, 1, 1, 3, 6, 15, 36, 91)


def sample(space, seed):
    return jax.jit(jax.vmap(space.random))(jax.random.split(jax.random.key(seed), COUNT))


@pytest.mark.parametrize(("space", "moments"), [(SO2(), PLANE), (SO3(), SPACE), (SE2(), PLANE), (SE3(), SPACE)], ids=str)
def test_traces_have_the_moments_of_haar_measure(space, moments):
    R = jax.tree.leaves(sample(space, 5))[0]
    fixed = np.asarray(space.rotations.random(jax.random.key(1)) if hasattr(space, "rotations") else space.random(jax.random.key(1)))
    for matrices in (R, R @ fixed):  # Haar measure does not change under a fixed rotation
        trace = np.trace(matrices, axis1=-2, axis2=-1)
        for n in range(1, 5):
            z = (np.mean(trace**n) - moments[n]) / np.sqrt((moments[2 * n] - moments[n] ** 2) / COUNT)
            assert abs(z) < 5


def test_angles_are_uniform():
    """E cos nθ = E sin nθ = 0, with variance ½."""
    angle = np.asarray(sample(Circle(), 6))
    for n in range(1, 5):
        for wave in (np.cos(n * angle), np.sin(n * angle)):
            assert abs(np.mean(wave) / np.sqrt(0.5 / COUNT)) < 5
