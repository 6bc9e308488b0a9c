"""Where a run's system comes from: the gallery by name, or a Python file that the user names on the command line, `my_model.py:system`.

A Python file is run when it is named there, and only there: a run file cannot name one. What a model may hold beside its system:

    start(scheme)      a start state; needed
    scheme(system)     the scheme that suits it; VariationalEuler without it
    step               a step that suits the scheme; 0.01 without it
    observables        names and functions of a State, to be asked for with --observe
    picture(system, q) how it is drawn, a Drawing; as its space and masses suggest without it
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from bismut.actions import VariationalEuler
from bismut.errors import BismutError, nearest
from bismut.gallery import Entry, entry
from bismut.mechanics import System


@dataclass(frozen=True)
class Model:
    """A system ready to be built, with a model's own observables and the text of its file, if it is one."""

    entry: Entry
    observables: Mapping[str, Callable] = field(default_factory=dict)
    text: str | None = None


def from_gallery(name: str) -> Model:
    return Model(entry(name))


def from_file(place: str) -> Model:
    """The model at `file.py:name`."""
    path, module, target = named_in_file(place)
    return Model(_entry(place, target, module), _observables(path, module), path.read_text(encoding="utf-8"))


def named_in_file(place: str) -> tuple[Path, ModuleType, Any]:
    """What `file.py:name` names, with the file and its module."""
    file, _, name = place.rpartition(":")
    path = Path(file)
    if not name.isidentifier() or path.suffix != ".py":
        raise BismutError(f"A Python model is given as file.py:name, got {place!r}. `bismut new my_model.py` writes one to begin with.")
    if not path.is_file():
        raise BismutError(f"There is no file {path}. `bismut new {path}` writes one to begin with.")
    module = _run(path)
    if not hasattr(module, name):
        public = [known for known, value in vars(module).items() if not known.startswith("_") and (callable(value) or isinstance(value, System))]
        raise BismutError(f"{path} has no {name!r}. {nearest(name, public)}")
    return path, module, getattr(module, name)


class _AsWritten(SourceFileLoader):
    """The text that is there now. Bytecode that Python keeps may belong to another text of the same second and length."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _run(path: Path) -> ModuleType:
    # Under a name that no module has, found by lookups of the module of a class (dataclasses do), and with the files beside it in reach.
    name = f"bismut_model_{path.stem}"
    spec = spec_from_file_location(name, path, loader=_AsWritten(name, str(path.absolute())))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module
    folder = str(path.absolute().parent)
    before = list(sys.path)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except SystemExit as problem:
        raise BismutError(f"{path} exits the program when it is read (sys.exit or exit). A model is read, not run: remove that line.") from problem
    except Exception as problem:
        lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if Path(frame.filename) == path.absolute()]
        line = getattr(problem, "lineno", None) or (lines[-1] if lines else None)
        where = f", line {line}" if line else ""
        raise BismutError(f"{path} fails when it is read{where}: {type(problem).__name__}: {problem}") from problem
    finally:
        # Last from here on: a file of the user's that is called random.py must not be taken for Python's by later imports, such as a worker's.
        sys.path[:] = before if folder in before else [*before, folder]
    return module


def _entry(place: str, target: Any, module: ModuleType) -> Entry:
    if isinstance(target, Entry):
        return target
    if isinstance(target, System):
        build: Any = lambda: target
    elif callable(target):
        build = target
    else:
        raise BismutError(f"{place} must be a System, a function that returns one, or a gallery Entry, got {type(target).__name__}.")
    if not callable(getattr(module, "start", None)):
        lacks = f"{place} has a start that is not a function" if hasattr(module, "start") else f"{place} has no start"
        raise BismutError(f"{lacks}: write a function start(scheme) that returns scheme.start(q, velocity=... | temperature=...).")
    step = getattr(module, "step", 0.01)
    if isinstance(step, bool) or not isinstance(step, int | float) or not step > 0:
        raise BismutError(f"step in {place.rpartition(':')[0]} must be a positive number, got {step!r}.")
    scheme, picture = getattr(module, "scheme", VariationalEuler), getattr(module, "picture", None)
    return Entry(place, module.__doc__ or place, build, start=module.start, scheme=scheme, step=step, picture=picture)


def _observables(path: Path, module: ModuleType) -> Mapping[str, Callable]:
    observables = getattr(module, "observables", {})
    if not isinstance(observables, Mapping) or not all(map(callable, observables.values())):
        raise BismutError(f"observables in {path} must be a dictionary of names and functions of a State, got {observables!r}.")
    return observables
