"""Every gallery system builds, starts, runs, keeps the symmetries it claims, and is what its facts say."""

import math

import jax
import pytest

from bismut.errors import BismutError
from bismut.gallery import entries, entry
from bismut.gallery.measures import symmetry_spread

ENTRIES = entries()


# The others take long to compile, and are tried by `make measure`.
SHORT = ("oscillator", "kubo-oscillator", "double-well", "ballistic-pendulum", "heavy-top", "spherical-pendulum")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in SHORT else pytest.mark.slow) for name in ENTRIES])
def test_the_default_system_runs_keeps_its_symmetries_and_is_what_its_facts_say(name):
    """One test for each system, because one compiled trajectory serves all three."""
    trial = ENTRIES[name].trial()
    assert trial.trajectory.outcome.ok, trial.trajectory.outcome
    for symmetry in trial.system.symmetries if trial.entry.kept is None else trial.entry.kept:
        # A hundred noisy steps with residuals at round-off each.
        assert symmetry_spread(trial, symmetry) < 1e-11, symmetry
    wrong = [str(fact) for fact in trial.facts if not fact.held]
    assert not wrong, wrong


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_says_what_it_is(name):
    found = ENTRIES[name]
    assert found.name == name
    assert len(found.physics) > 300
    assert "=" in found.physics
    assert found.facts
    assert found.step > 0


def test_an_unknown_system_suggests_the_nearest():
    with pytest.raises(BismutError, match="heavy-top"):
        entry("heavytop")


def test_an_unknown_parameter_suggests_the_nearest():
    with pytest.raises(BismutError, match="frequency"):
        ENTRIES["oscillator"].system({"frequencies": 2.0})


def test_numbers_change_without_a_new_program():
    found = ENTRIES["oscillator"]
    system = found.build()
    changed = system.with_parameters(found.build(frequency=2.0).parameters)
    assert math.isclose(float(changed.potential(changed.space.origin() + 1.0)), 2.0)
    # What a compiled program is made for is the structure; only leaves have changed.
    assert jax.tree.structure(changed) == jax.tree.structure(system)
