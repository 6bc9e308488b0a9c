"""A step of h with n substeps is the sum of n steps of h/n of the same path."""

import numpy as np
import pytest

from bismut.noise import Wiener

from .paths import SEED, increments

TRAJECTORIES = np.array([0, 1, 17, 1 << 33])
H = 0.3


@pytest.mark.parametrize("substeps", [2, 3, 4, 6, 8, 16])
def test_coarse_is_the_sum_of_fine(substeps):
    """Also where the fine index passes 2³², 2⁴⁰ and the block of four is cut by a step."""
    steps = [0, 1, (1 << 32) // substeps + 1, (1 << 40) + 5]
    coarse = increments(Wiener(SEED, substeps=substeps), TRAJECTORIES, steps, H, channels=3)
    fine = increments(Wiener(SEED), TRAJECTORIES, [substeps * k + j for k in steps for j in range(substeps)], H / substeps, channels=3)
    fine = fine.reshape(len(steps), substeps, *fine.shape[1:])
    allowed = 4 * np.finfo(float).eps * np.sum(np.abs(fine), axis=1)
    assert np.all(np.abs(coarse - np.sum(fine, axis=1)) <= allowed)


def test_refinement_in_two_stages():
    """Four substeps are two steps with two substeps each."""
    steps = np.array([0, 3, (1 << 32) - 1, 1 << 40], np.uint64)
    once = increments(Wiener(SEED, substeps=4), TRAJECTORIES, steps, H, channels=3)
    halves = [increments(Wiener(SEED, substeps=2), TRAJECTORIES, 2 * steps + np.uint64(j), H / 2, channels=3) for j in (0, 1)]
    assert np.max(np.abs(once - sum(halves))) <= 8 * np.finfo(float).eps


def test_refinement_commutes_with_shift():
    """A path shifted by s coarse steps is the fine path shifted by n s."""
    coarse = increments(Wiener(SEED, substeps=3).shift(1 << 33), TRAJECTORIES, [0, 1, 2, 3], H, channels=3)
    fine = increments(Wiener(SEED).shift(3 << 33), TRAJECTORIES, range(12), H / 3, channels=3).reshape(4, 3, *coarse.shape[1:])
    assert np.max(np.abs(coarse - np.sum(fine, axis=1))) <= 8 * np.finfo(float).eps
