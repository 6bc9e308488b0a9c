"""All gallery systems by name: every module of this package that has an ENTRY."""

from importlib import import_module
from pkgutil import iter_modules

from bismut.errors import BismutError, nearest
from bismut.gallery.entry import Entry


def entries() -> dict[str, Entry]:
    """Names and entries, in alphabetical order."""
    modules = (import_module(f"{__package__}.{module.name}") for module in iter_modules(import_module(__package__ or "").__path__))
    found = [module.ENTRY for module in modules if hasattr(module, "ENTRY")]
    return {entry.name: entry for entry in sorted(found, key=lambda entry: entry.name)}


def entry(name: str) -> Entry:
    known = entries()
    if name not in known:
        raise BismutError(f"There is no gallery system {name!r}. {nearest(name, known)}")
    return known[name]
