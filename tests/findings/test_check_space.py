"""`check_space` passes what is a space, every registered one among them, and names the law that something else breaks."""

import inspect
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import ShapeError
from bismut.registry import SPACES

pytestmark = pytest.mark.usefixtures("compiled_quickly")


@dataclass(frozen=True)
class TangentSphere(bm.Space):
    """S² with tangent vectors of ℝ³ as velocities: great circles, right for tangent vectors, and no frame."""

    def origin(self, dtype=float):
        return jnp.array([0.0, 0.0, 1.0], dtype)

    def zero(self, dtype=float):
        return jnp.zeros(3, dtype)

    def random(self, key):
        x = jax.random.normal(key, (3,))
        return x / jnp.sqrt(x @ x)

    def move(self, q, velocity, time: Any = 1.0):
        v = time * velocity
        angle = jnp.sqrt(v @ v + 1e-30)
        return jnp.cos(angle) * q + jnp.sin(angle) / angle * v

    def subtract(self, q1, q0):
        across = q1 - (q1 @ q0) * q0
        size = jnp.sqrt(across @ across + 1e-30)
        return jnp.arctan2(size, q1 @ q0) / size * across


@dataclass(frozen=True)
class Positive(bm.Space):
    """q > 0:   q ⊕ v = q eᵛ."""

    def origin(self, dtype=float):
        return jnp.ones(1, dtype)

    def zero(self, dtype=float):
        return jnp.zeros(1, dtype)

    def move(self, q, velocity, time: Any = 1.0):
        return q * jnp.exp(time * velocity)

    def subtract(self, q1, q0):
        return jnp.log(q1 / q0)


def failed(space) -> set[str]:
    return {finding.law for finding in bm.check_space(space).findings if finding.held is False}


def test_tangent_vectors_are_no_frame():
    """A walk on it leads off the sphere, which is what the broken law says beforehand."""
    space = TangentSphere()
    report = bm.check_space(space)
    assert not report.ok
    assert "velocity comes back" in failed(space)
    assert "A CLAIM FAILED" in str(report)
    q = space.origin()
    for kick in 0.3 * np.random.default_rng(0).normal(size=(40, 3)):
        q = space.move(q, kick)
    assert abs(float(jnp.linalg.norm(q)) - 1) > 0.1


def _registered():
    """Those of the registry that are made of nothing, or of whole numbers, each 2 here."""
    for name in SPACES.own:
        if inspect.isclass(SPACES[name]):
            sizes = [one for one in inspect.signature(SPACES[name]).parameters.values() if one.default is one.empty]
            if all(one.annotation in (int, "int") for one in sizes):
                yield SPACES[name](*[2] * len(sizes))


OURS = list(_registered())


def test_the_spaces_of_the_registry_are_among_them():
    assert {"Circle", "Euclidean", "SE2", "SE3", "SO2", "SO3", "Torus"} <= {type(space).__name__ for space in OURS}


LONG = (bm.SE2, bm.SE3)  # 10 s and 7 s


@pytest.mark.parametrize(
    "space", [pytest.param(one, marks=pytest.mark.slow) if isinstance(one, LONG) else one for one in (Positive(), *OURS)], ids=str
)
def test_spaces_are_spaces(space):
    report = bm.check_space(space)
    assert report.ok, report
    assert report["runs backwards"].held


class Forgetful(Positive):
    """Time is not used."""

    def move(self, q, velocity, time: Any = 1.0):
        return q * jnp.exp(velocity)


class Kinked(Positive):
    """|v| where v should be: no derivative at rest that a scheme could use."""

    def move(self, q, velocity, time: Any = 1.0):
        return q * jnp.exp(time * jnp.sign(velocity) * jnp.sqrt(velocity**2))


class Leaning(Positive):
    """q ⊕ v = q (1 + v): right at both ends, but no way back along itself."""

    def move(self, q, velocity, time: Any = 1.0):
        return q * (1 + time * velocity)

    def subtract(self, q1, q0):
        return q1 / q0 - 1


@pytest.mark.long
def test_the_broken_law_is_named():
    assert failed(Forgetful()) == {"time scales velocity"}
    assert "frame at rest" in failed(Kinked())
    report = bm.check_space(Leaning())
    assert report.ok
    assert report["runs backwards"].held is None
    assert "Metropolised steps are not to be used" in report["runs backwards"].how


class Nameless(Positive):
    """Compared by identity, so a copy is another space."""

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)


def test_a_space_is_a_value():
    assert failed(Nameless()) == {"is a value"}


def test_what_is_not_said_is_listed():
    assert [finding.law for finding in bm.check_space(Positive()).unmeasured] == ["stays on the space"]


SMALL = [bm.Sphere(2), bm.Simplex(3), bm.PositiveDefinite(2), bm.SU(2)]
LARGE = [bm.Stiefel(4, 2), bm.SO(4), bm.SU(3)]


@pytest.mark.parametrize("domain", [*SMALL, *LARGE], ids=str)
def test_domains_are_checked_with_their_space(domain):
    report = bm.check_space(domain)
    assert report.ok, report
    assert report["volume element"].held
    assert report["velocity comes back"].held


@dataclass(frozen=True)
class Careless(bm.Simplex):
    """Without the volume element, and with random points that coordinates() does not give back."""

    n: int = 3

    def log_volume(self, q):
        return 0.0

    def coordinates(self, x):
        return jnp.log(x[:-1])


def test_a_wrong_volume_element_is_named():
    assert failed(Careless()) == {"volume element", "coordinates come back"}


def test_anything_else_is_refused():
    with pytest.raises(ShapeError, match=r"derived from bm\.Space"):
        bm.check_space("sphere")
