"""Registries: what run files, the command line and the documentation know by name.

    @SCHEMES.register                    above a class or a function
    ENTRY = Entry("pendulum", ...)       a value made by the constructor of its kind, which begins with its name

Installed packages publish theirs as entry points, in a group for each kind:

    [project.entry-points."bismut.schemes"]
    Leaning = "my_package:Leaning"

Names are known without importing what they stand for: ours are read off the source, where registrations have the two forms above, those of others off
the metadata of their package. So `bismut run --help` imports no JAX, a system of the gallery imports no other, and a package that cannot be imported
affects no run that does not name it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bismut.errors import BismutError, ExtensionWarning, nearest
from bismut.user_errors import warn

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

T = TypeVar("T")
R = TypeVar("R")

_ROOT = Path(__file__).parent


@cache
def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # 20 ms with a hundred packages

    return entry_points()  # type: ignore[return-value]


class Registry(Generic[T]):
    """Things of one kind by name, of our own packages and of others.

    kind      what it is called in messages, in the singular
    group     in the plural; the group of entry points is `bismut.GROUP`
    packages  of ours that are searched, below `bismut`
    values    constructors of values that are registered where they are assigned, if any
    """

    def __init__(self, kind: str, group: str, packages: tuple[str, ...], values: str = ""):
        self.kind, self.group, self.packages, self.values = kind, group, packages, values
        self._loaded: dict[str, T] = {}

    def register(self, thing: R) -> R:
        """A decorator: make a class or a function known by its name."""
        name = thing.__name__  # type: ignore[attr-defined]
        if name in self._loaded and self._loaded[name].__module__ != thing.__module__:
            raise BismutError(f"There is a {self.kind} {name!r} already, in {self._loaded[name].__module__}: rename one of them.")
        self._loaded[name] = thing  # type: ignore[assignment]
        return thing

    @cached_property
    def own(self) -> dict[str, tuple[str, str]]:
        """Our own names, with the module and the attribute of each, read off the source."""
        decorated = rf"^@{self.group.upper()}\.register\n(?:@.*\n)*(?:class|def) (?P<name>\w+)"
        assigned = rf"^(?P<variable>[A-Za-z]\w*) = (?:{self.values})\(\s*\"(?P<value>[^\"]+)\""
        pattern = re.compile(f"{decorated}|{assigned}" if self.values else decorated, re.MULTILINE)
        places = {}
        for package in self.packages:
            folder = _ROOT.joinpath(*package.split("."))
            files = {f"bismut.{package}.{file.stem}": file for file in folder.glob("*.py")} or {f"bismut.{package}": folder.with_suffix(".py")}
            for module, file in files.items():
                for match in map(re.Match.groupdict, pattern.finditer(file.read_text(encoding="utf-8"))):
                    name = match["name"] or match["value"]
                    places[name] = module, match.get("variable") or name
        return dict(sorted(places.items()))

    @cached_property
    def extensions(self) -> dict[str, list[EntryPoint]]:
        """Names that installed packages publish, and by which of them; more than one is a clash."""
        published: dict[str, list[EntryPoint]] = {}
        for point in _entry_points().select(group=f"bismut.{self.group}"):
            published.setdefault(point.name, []).append(point)
        return published

    def names(self) -> list[str]:
        """All names, in alphabetical order; nothing is imported."""
        return sorted({*self.own, *self._loaded, *self.extensions})

    def __contains__(self, name: object) -> bool:
        return name in self._loaded or name in self.own or name in self.extensions

    def __getitem__(self, name: str) -> T:
        """The thing of that name, imported now; an error names the nearest known name, or the package that cannot be imported."""
        if name in self._loaded:
            return self._loaded[name]
        if name in self.own:
            module, attribute = self.own[name]
            self._loaded[name] = getattr(import_module(module), attribute)
        elif name in self.extensions:
            self._loaded[name] = self._load(name)
        else:
            raise BismutError(f"There is no {self.kind} {name!r}. {nearest(name, self.names())}")
        return self._loaded[name]

    def _load(self, name: str) -> T:
        first, *others = self.extensions[name]
        if others:
            raise BismutError(f"The {self.kind} {name!r} is published by {self.origin_of(name)}: uninstall all but one of them.")
        try:
            return first.load()
        except Exception as problem:  # code of others may fail in any way
            failure = f"{type(problem).__name__}: {problem}"
            raise BismutError(f"The {self.kind} {name!r} of {self.origin_of(name)} cannot be imported from {first.value}: {failure}") from problem

    def items(self) -> Iterator[tuple[str, T]]:
        """Everything there is, by name. What cannot be imported, or has a name of ours, is left out with a warning that names its package."""
        for name in self.names():
            if name in self.extensions and name in self.own:
                warn(f"bismut has a {self.kind} {name!r} itself, so that of {self.origin_of(name)} is ignored.", ExtensionWarning)
            try:
                yield name, self[name]
            except BismutError as problem:
                warn(str(problem), ExtensionWarning)

    def name_of(self, thing: Any) -> str | None:
        """The name under which something is registered, if it is."""
        for name, known in self._loaded.items():
            if known is thing:
                return name
        place = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '')}"
        return next((name for name, points in self.extensions.items() if [point.value for point in points] == [place]), None)

    def origin_of(self, name: str) -> str:
        """The package that publishes a name, with its version; empty if it is bismut alone."""
        dists = [point.dist for point in self.extensions.get(name, ())]
        return " and by ".join(sorted(f"{dist.name} {dist.version}" if dist is not None else "an unknown package" for dist in dists))


SPACES: Registry[type] = Registry("space", "spaces", ("spaces",))
SCHEMES: Registry[Callable[..., Any]] = Registry("scheme", "schemes", ("actions", "flows"))
SPLITTINGS: Registry[Any] = Registry("splitting", "splittings", ("flows",), "WordSplitting")
PATHS: Registry[Callable[..., Any]] = Registry("path", "paths", ("noise",))
QUANTITIES: Registry[Any] = Registry("quantity", "quantities", ("ensembles.observable",), "Observable|_booked")
OBSERVERS: Registry[Callable[..., Any]] = Registry("observer", "observers", ("ensembles.observers",))
PAIR_ENERGIES: Registry[Callable[..., Any]] = Registry("pair energy", "pair_energies", ("mechanics.bodies",))
FORMATS: Registry[Any] = Registry("format", "formats", ("sharing.formats",), "Format")
GALLERY: Registry[Any] = Registry("gallery system", "gallery", ("gallery",), "Entry")
CHECKS: Registry[Any] = Registry("check", "checks", ("findings",))
FIGURES: Registry[Any] = Registry("figure", "figures", ("figures",), "Figure")
PROVIDERS: Registry[Callable[..., Any]] = Registry("provider", "providers", ("figures", "findings", "store"))  # what packages ask of those above them

REGISTRIES: dict[str, Registry[Any]] = {
    one.group: one for one in (GALLERY, SCHEMES, SPLITTINGS, PATHS, OBSERVERS, QUANTITIES, SPACES, PAIR_ENERGIES, FORMATS, CHECKS, FIGURES)
}
PUBLIC = (SPACES, SCHEMES, SPLITTINGS, PATHS, QUANTITIES, OBSERVERS, PAIR_ENERGIES)  # whose names are attributes of `bismut`


def extension_versions() -> dict[str, str]:
    """Installed packages that publish something here, with their versions."""
    points = (point for registry in REGISTRIES.values() for one in registry.extensions.values() for point in one)
    return {point.dist.name: point.dist.version for point in points if point.dist is not None}
