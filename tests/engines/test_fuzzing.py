"""Random programs give the same in XLA, machine code and NumPy: a few in every run of the tests, an hour of them where measurements are made."""

import pytest

from tests.engines import fuzzing


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("tame", [False, True], ids=["lines", "whole"])
@pytest.mark.parametrize("seed", range(7))
def test_random_programs_have_one_meaning(seed, tame):
    assert fuzzing.check(seed, tame) >= 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs_have_one_meaning_for_an_hour():
    assert fuzzing.main(1000, 3600.0) == 0


def test_a_difference_is_reported_as_a_short_program(monkeypatch):
    """With an engine that takes −x for x."""
    true = fuzzing.evaluate
    monkeypatch.setattr(fuzzing, "evaluate", lambda f, *arrays: [-x if x.dtype.kind == "f" else x for x in true(f, *arrays)])
    with pytest.raises(fuzzing.Different, match=r"(?s)seed 3, whole: native differs from NumPy at .*v\d+ = .*NumPy float.*native float"):
        fuzzing.check(3, tame=True)
