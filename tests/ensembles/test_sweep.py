"""What a sweep changes: a parameter of the system, or a number that the scheme holds."""

import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.ensembles.sweep import grid, variants
from bismut.errors import DomainError

system = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: parameters["k"] * jnp.sum(q**2), parameters={"k": 1.0})
scheme = bm.Langevin(system, temperature=0.5, friction=1.0)


def test_each_combination_is_the_scheme_with_those_numbers():
    found = variants(scheme, grid({"k": [1, 2], "temperature": [0.1, 0.2, 0.3]}))
    assert [(float(one.system.parameters["k"]), float(one.temperature(0.0, None))) for one in found] == [
        (1.0, 0.1),
        (1.0, 0.2),
        (1.0, 0.3),
        (2.0, 0.1),
        (2.0, 0.2),
        (2.0, 0.3),
    ]


def test_what_is_not_a_number_is_not_swept():
    with pytest.raises(DomainError, match="Did you mean 'temperature'"):
        variants(scheme, grid({"temprature": [1.0]}))
    with pytest.raises(DomainError, match="no parameter 'splitting'"):
        variants(scheme, grid({"splitting": [1.0]}))
