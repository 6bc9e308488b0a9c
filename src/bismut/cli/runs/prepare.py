"""From a document to a run: checked against the gallery, built, and every mistake on the way collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Any

from bismut import actions, flows
from bismut.blame import why
from bismut.cli.runs import defaults
from bismut.cli.runs.driving import path_of, with_record
from bismut.cli.runs.model import Model, from_gallery
from bismut.cli.runs.observers import default_observers, observers, reachable, with_books
from bismut.cli.runs.schema import OVER_ACTIONS, Mistake, Mistakes, mistakes, number, shown, whole
from bismut.cli.runs.starts import started, with_frame
from bismut.cli.runs.toml import Lines
from bismut.ensembles import Request, perform, request
from bismut.ensembles.sweep import grid, variants
from bismut.errors import BismutError, nearest
from bismut.gallery import Entry
from bismut.mechanics import Maxwell, Scheme, State, System, time_of
from bismut.noise import Path

PASSED = ("step", "steps", "trajectories", "seed", "every", "burn_in", "t0", "sweep", "until", "block")  # to simulate, as they stand


@dataclass(frozen=True)
class Prepared:
    """A run that can start. `document` says all of it, defaults included, and reads back to the same run."""

    document: dict[str, Any]
    model: Model
    scheme: Scheme
    start: State | Maxwell
    observe: dict[str, Any]
    labels: dict[str, Any]
    path: Path | None = None

    def simulate(self, *, dry_run: bool = False, progress: bool | None = None) -> Any:
        """The result; or with `dry_run` the plan."""
        return perform(self.request(), progress=progress, dry_run=dry_run)

    def request(self) -> Request:
        """What the API would be asked for."""
        asked: dict[str, Any] = {key: self.document[key] for key in PASSED if key in self.document}
        asked["until"] = {name: float(error) for name, error in asked.get("until", {}).items()}
        asked["sweep"] = {name: [float(value) for value in values] for name, values in asked.get("sweep", {}).items()}
        asked["t0"] = float(asked.get("t0", 0.0))
        if self.path is not None:
            asked = {key: value for key, value in asked.items() if key != "seed"} | {"path": self.path}
        final = self.document.get("output", {}).get("final", True)
        return request(self.scheme, self.start, observe=self.observe, keep_final=final, **asked)


def prepare(document: Mapping[str, Any], lines: Lines, source: str = "", model: Model | None = None) -> Prepared:
    """The run of a document, or all its mistakes. With a Python model the document names no system."""
    whole_document = defaults.numbers(document)
    if model is not None:
        whole_document["system"] = {"name": model.entry.name, **whole_document.get("system", {})}
    found = mistakes(whole_document)
    wrong = lambda *tables: any(mistake.path[0] in tables for mistake in found)
    named = whole_document.get("system")
    if not isinstance(named, Mapping) or not isinstance(named.get("name"), str) or not isinstance(named.get("parameters", {}), Mapping):
        named = None
    elif model is None:
        model = _known(named["name"], found)
    watched: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    scheme = start = path = None
    if named is not None and model is not None:
        whole_document["system"] = named = _with_defaults(model.entry, named)
        whole_document.setdefault("step", float(model.entry.step))
        # Where something cannot be built, the gallery's own choice stands in for it, so that what depends on it is looked at all the same.
        system = _built(model.entry, named["parameters"], found) or _built(model.entry, {}, [])
        if system is not None and not wrong("scheme", "bath"):
            scheme = _attempt(("bath" if "bath" in whole_document else "scheme",), partial(_scheme, model.entry, system, whole_document), found)
        if system is not None and scheme is None:
            scheme = _attempt(("scheme",), partial(_own_scheme, model.entry, system), [] if found else found)
        start = _attempt(("system",), partial(_own_start, model.entry, scheme), [] if found else found) if scheme is not None else None
    if scheme is not None and start is not None and model is not None:
        asked = whole_document.get("observe") or default_observers(scheme)
        asked = {name: defaults.observer(table) for name, table in asked.items()} if isinstance(asked, Mapping) else asked
        whole_document["observe"] = asked
        if "bath" not in whole_document and "scheme" not in whole_document and (written := defaults.scheme(scheme)):
            whole_document["scheme"] = written
        whole_document = with_record(with_frame(scheme, whole_document, found), found)
        path = path_of(whole_document, scheme, found)
        start = started(scheme, start, whole_document, found)
        start = with_books(scheme, start, asked, whole_document["t0"] if not wrong("t0") else time_of(start), found)
        watched, labels = observers(whole_document, scheme, start, model.observables, found)
        reachable(whole_document.get("until"), watched, asked, found)
        _check_sweep(model.entry, scheme, whole_document.get("sweep"), found)
    if found:
        raise Mistakes(found, lines, source)
    assert model is not None
    assert scheme is not None
    assert start is not None
    return Prepared(whole_document, model, scheme, start, watched, labels, path)


def _known(name: str, found: list[Mistake]) -> Model | None:
    if name.endswith(".py") or ".py:" in name or "/" in name:
        text = f"expected a system of the gallery, got {shown(name)}. A run file never names a file, so it cannot execute code. "
        found.append(Mistake(("system", "name"), text + "A Python model is run from the command line: `bismut run my_model.py:system`."))
        return None
    try:
        return from_gallery(name)
    except BismutError as problem:
        found.append(Mistake(("system", "name"), str(problem)))
        return None


def _attempt(path: tuple[str, ...], make: Callable[[], Any], found: list[Mistake]) -> Any:
    """make(), or None and a mistake; functions of the user may fail in any way."""
    try:
        return make()
    except BismutError as problem:
        found.append(Mistake(path, str(problem)))
    except (Exception, SystemExit) as problem:
        found.append(Mistake(path, f"this cannot be built: {type(problem).__name__}: {why(problem)}."))
    return None


# The system.


def _with_defaults(entry: Entry, named: Mapping[str, Any]) -> dict[str, Any]:
    """The table [system] with every parameter of the entry, so that the run does not change when a default does."""
    defaults = {name: _as_written(value) for name, value in entry.parameters.items() if value is not Parameter.empty}
    written = {name: value for name, value in defaults.items() if value is not NotImplemented}
    return {**named, "parameters": written | dict(named.get("parameters", {}))}


def _as_written(value: Any) -> Any:
    """A default as it stands in a run file; NotImplemented for what has no place there."""
    if value is None:
        return "none"
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, tuple | list):
        parts = [_as_written(part) for part in value]
        return NotImplemented if NotImplemented in parts else parts
    return value if isinstance(value, bool | int | float | str) else NotImplemented


def _built(entry: Entry, parameters: Mapping[str, Any], found: list[Mistake]) -> System | None:
    known, before = signature(entry.build).parameters, len(found)
    for name, value in parameters.items():
        path = ("system", "parameters", name)
        if name not in known:
            found.append(Mistake(path, f"{entry.name} has no parameter {name!r}. {nearest(name, known)}"))
        elif wanted := _wanted(known[name], value):
            found.append(Mistake(path, f"expected {wanted}, as in the default {shown(_as_written(known[name].default))}, got {shown(value)}."))
    for name, parameter in known.items():
        if parameter.default is Parameter.empty and name not in parameters:
            found.append(Mistake(("system", "parameters"), f"{name} is missing; it has no default. Give it with --set {name}=..."))
    if len(found) > before:
        return None
    taken = {name: _taken(known[name].default, value) for name, value in parameters.items()}
    return _attempt(("system",), lambda: _of_type(System, entry.build(**taken), f"{entry.name} must be a System or return one"), found)


def _of_type(kind: Any, made: Any, words: str) -> Any:
    """What a function of the user returned, if it is what was wanted; a forgotten `return` gives None."""
    if not isinstance(made, kind):
        got = "None. Is a return missing?" if made is None else f"{type(made).__name__}."
        raise BismutError(f"{words}, got {got}")
    return made


def _wanted(parameter: Parameter, value: Any) -> str | None:
    """What would fit a parameter, judged by its default, if the value does not."""
    default = parameter.default
    if value == "none":
        return None if default is None or "None" in str(parameter.annotation) else "a value"
    if isinstance(default, bool | str):
        fits, words = isinstance(value, type(default)), "true or false" if isinstance(default, bool) else "a word"
    elif isinstance(default, int):
        fits, words = whole(value), "a whole number"
    elif isinstance(default, float):
        fits, words = number(value), "a number"
    elif isinstance(default, tuple | list):
        fits = isinstance(value, list | tuple) and len(value) == len(default) and all(map(number, value))
        words = f"a list of {len(default)} numbers"
    else:
        return None
    return None if fits else words


def _taken(default: Any, value: Any) -> Any:
    """A written value as the builder takes it."""
    if value == "none":
        return None
    if isinstance(value, list):
        return tuple(float(part) if number(part) else _taken(None, part) for part in value)
    return float(value) if isinstance(default, float) and number(value) else value


# The scheme.


def _check_sweep(entry: Entry, scheme: Scheme, sweep: Any, found: list[Mistake]) -> None:
    wrong = {mistake.path for mistake in found}
    for name, values in sweep.items() if isinstance(sweep, Mapping) else ():
        one = values[:1] if ("sweep", name) not in wrong else [1.0]
        built_in = name in entry.parameters and name not in (scheme.system.parameters or {})
        before = len(found)
        _attempt(("sweep", name), lambda name=name, one=one: variants(scheme, grid({name: one})), found)
        if built_in and len(found) > before:
            text = f"{name} is built into the functions of {entry.name}. Give it as parameters={{{name!r}: {name}}} and let them name `parameters`."
            found[-1] = Mistake(("sweep", name), text)


def _own_scheme(entry: Entry, system: System) -> Scheme:
    return _of_type(Scheme, entry.scheme(system), "scheme(system) must return a scheme such as bm.Midpoint(system)")


def _own_start(entry: Entry, scheme: Scheme) -> State | Maxwell:
    return _of_type(State | Maxwell, entry.start(scheme), "start(scheme) must return scheme.start(q, velocity=... | temperature=...)")


def _scheme(entry: Entry, system: System, document: Mapping[str, Any]) -> Scheme:
    chosen, bath = document.get("scheme"), document.get("bath")
    if bath is None and chosen is None:
        return _own_scheme(entry, system)
    if bath is None:
        assert chosen is not None
        return _maker(chosen)(system)
    splitting = bath.get("splitting", "BAOAB")
    if splitting in OVER_ACTIONS:
        action = _maker(chosen) if chosen else actions.Verlet
        made = getattr(flows, splitting)(action)
    else:
        made = getattr(flows, splitting)
    settings = {name: bath.get(name) for name in ("friction", "rate", "own_noise")}
    return flows.Langevin(system, temperature=bath["temperature"], splitting=made, **settings)


def _maker(chosen: Mapping[str, Any]) -> Callable[[System], Any]:
    """The class of a scheme with what was chosen about it."""
    name, options = chosen["name"], {key: value for key, value in chosen.items() if key != "name"}
    kind = getattr(actions, name, None) or getattr(flows, name)
    allowed = [key for key in ("retraction", "end") if key in getattr(kind, "__dataclass_fields__", {})]
    for key in options:
        if key not in allowed:
            raise BismutError(f"{name} has no {key!r}; it takes {' and '.join(allowed) or 'nothing besides its name'}.")
    if not options:
        return kind
    made = partial(kind, **options)
    vars(made)["__name__"] = name  # by which a splitting calls its action
    return made
