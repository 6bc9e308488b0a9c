"""All figures by name: every module of this package that has a FIGURE."""

from importlib import import_module
from pkgutil import iter_modules

from bismut.errors import BismutError, nearest
from bismut.figures.figure import Figure


def figures() -> dict[str, Figure]:
    """Names and figures, in alphabetical order."""
    modules = (import_module(f"{__package__}.{module.name}") for module in iter_modules(import_module(__package__ or "").__path__))
    found = [module.FIGURE for module in modules if hasattr(module, "FIGURE")]
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


def figure(name: str) -> Figure:
    known = figures()
    if name not in known:
        raise BismutError(f"There is no figure {name!r}. {nearest(name, [*known, 'all'])}")
    return known[name]
