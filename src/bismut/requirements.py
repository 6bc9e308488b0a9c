"""Which versions of JAX this package accepts, as its metadata says: they are written in one place, pyproject.toml."""

from functools import cache
from importlib.metadata import PackageNotFoundError, requires


@cache
def jax_requirement() -> str:
    """The requirement on JAX as one gives it to pip; its bare name where the package is not installed and so has no metadata."""
    from packaging.requirements import Requirement

    try:
        parsed = (Requirement(line) for line in requires("bismut") or ())
        return next((f"jax{one.specifier}" for one in parsed if one.name == "jax"), "jax")
    except PackageNotFoundError:
        return "jax"
