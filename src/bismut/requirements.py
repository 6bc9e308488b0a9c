"""Which versions of JAX this package accepts, as its metadata says: they are written in one place, pyproject.toml.

Versions are excluded by name and not from above, so one may be installed that did not exist when this was tested.
"""

import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version

TESTED = "0.12.0.1"  # the newest jax with which the tests were run


@cache
def jax_requirement() -> str:
    """The requirement on JAX as one gives it to pip; its bare name where the package is not installed and so has no metadata."""
    from packaging.requirements import Requirement

    try:
        parsed = (Requirement(line) for line in requires("bismut") or ())
        return next((f"jax{one.specifier}" for one in parsed if one.name == "jax"), "jax")
    except PackageNotFoundError:
        return "jax"


def doubt_about_jax(installed: str, required: str) -> str | None:
    """What speaks against a version of JAX where this is required, and what to do."""
    from packaging.requirements import Requirement
    from packaging.version import Version

    if not Requirement(required).specifier.contains(installed, prereleases=True):
        return f"bismut excludes jax {installed}, which computes wrongly, slowly or not at all. Install another one: pip install '{required}'."
    if Version(installed) > Version(TESTED):
        return (
            f"bismut was tested with jax up to {TESTED}, and this is {installed}. `bismut doctor` shows whether it computes rightly and with which "
            f"engine; pip install 'jax=={TESTED}' gives one that was tested."
        )
    return None


@cache
def check_jax() -> None:
    """Warn of a JAX that is excluded or newer than tested, once in a process."""
    try:
        doubt = doubt_about_jax(version("jax"), jax_requirement())
    except PackageNotFoundError:  # an own build without metadata
        return
    if doubt is not None:
        warnings.warn(doubt, RuntimeWarning, stacklevel=3)
