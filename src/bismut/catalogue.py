"""Things found by name: every module of a package that has a certain attribute holds one."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from bismut.errors import BismutError, nearest

T = TypeVar("T")


def members(package: str, attribute: str) -> dict[str, Any]:
    """Names and things, in alphabetical order."""
    modules = (import_module(f"{package}.{module.name}") for module in iter_modules(import_module(package).__path__))
    found = (getattr(module, attribute) for module in modules if hasattr(module, attribute))
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


def chosen(name: str, known: Mapping[str, T], kind: str, others: tuple[str, ...] = ()) -> T:
    """The thing of that name, or an error that names the nearest."""
    if name not in known:
        raise BismutError(f"There is no {kind} {name!r}. {nearest(name, [*known, *others])}")
    return known[name]
