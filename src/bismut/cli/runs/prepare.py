"""From a document to a run: checked against the gallery, built, and every mistake on the way collected.

The document of a prepared run says everything, defaults included, so that a run does not change when a default does. What stays unsaid is what the
system itself provides: its start, the retraction of its space, and a scheme or a bath that no table can express.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any

from bismut.actions import Action, Verlet
from bismut.arguments import is_integer, is_number
from bismut.cli.runs.model import Model, from_gallery
from bismut.cli.runs.noise_path import path_of, with_record
from bismut.cli.runs.observers import default_observers, observers, reachable, with_defaults, with_ledger
from bismut.cli.runs.schema import SCHEME, document_mistakes
from bismut.cli.runs.starts import started, with_frame
from bismut.cli.runs.tables import Mistake, Mistakes, by_default, parameters_of, shown
from bismut.cli.runs.toml import Lines
from bismut.ensembles import Plan, Request, request
from bismut.ensembles.plan import rehearse
from bismut.ensembles.sweep import grid, variants
from bismut.errors import BismutError, nearest
from bismut.flows import Brownian, Langevin
from bismut.gallery import Entry
from bismut.mechanics import Maxwell, Scheme, State, System, time_of
from bismut.noise import Path
from bismut.registry import SCHEMES, SPLITTINGS
from bismut.user_errors import reason_of

DEFAULTS = {"steps": 1000, "trajectories": 100, "seed": 0, "burn_in": 0, "t0": 0.0}
_LOOKS = 100  # about so many, if `every` is not given
_PASSED = ("step", "steps", "trajectories", "seed", "every", "burn_in", "t0", "sweep", "until", "block", "arithmetic")  # to simulate, unchanged


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

    def plan(self) -> Plan:
        """What the run would take; a few of its steps are measured."""
        return rehearse(self.request())

    def request(self) -> Request:
        """The request that `simulate` would make."""
        asked: dict[str, Any] = {key: self.document[key] for key in _PASSED if key in self.document}
        asked["until"] = {name: float(error) for name, error in asked.get("until", {}).items()}
        asked["sweep"] = {name: [float(value) for value in values] for name, values in asked.get("sweep", {}).items()}
        asked["t0"] = float(asked.get("t0", 0.0))
        if self.path is not None:
            asked = {key: value for key, value in asked.items() if key != "seed"} | {"path": self.path}
        final = self.document.get("output", {}).get("final", True)
        return request(self.scheme, self.start, observe=self.observe, keep_final=final, **asked)


def prepare(document: Mapping[str, Any], lines: Lines, source: str = "", model: Model | None = None) -> Prepared:
    """The run of a document, or all its mistakes. With a Python model the document names no system."""
    document = _with_numbers(document)
    if model is not None:
        document["system"] = {"name": model.entry.name, **document.get("system", {})}
    mistakes = document_mistakes(document)
    wrong = lambda *tables: any(mistake.path[0] in tables for mistake in mistakes)
    named = document.get("system")
    if not isinstance(named, Mapping) or not isinstance(named.get("name"), str) or not isinstance(named.get("parameters", {}), Mapping):
        named = None
    elif model is None:
        model = _known(named["name"], mistakes)
    observe: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    scheme = start = path = None
    if named is not None and model is not None:
        document["system"] = named = _with_parameters(model.entry, named)
        document.setdefault("step", float(model.entry.step))
        # Where something cannot be built, the gallery's own choice stands in for it, so that what depends on it is checked all the same.
        system = _built(model.entry, named["parameters"], mistakes) or _built(model.entry, {}, [])
        if system is not None and not wrong("scheme", "bath"):
            scheme = _attempt(("bath" if "bath" in document else "scheme",), partial(_scheme, model.entry, system, document), mistakes)
        if system is not None and scheme is None:
            scheme = _attempt(("scheme",), partial(_own_scheme, model.entry, system), [] if mistakes else mistakes)
        start = _attempt(("system",), partial(_own_start, model.entry, scheme), [] if mistakes else mistakes) if scheme is not None else None
    if scheme is not None and start is not None and model is not None:
        asked = document.get("observe") or default_observers(scheme)
        asked = {name: with_defaults(table) for name, table in asked.items()} if isinstance(asked, Mapping) else asked
        document["observe"] = asked
        if "bath" not in document and "scheme" not in document and (written := _table_of(scheme)):
            document["scheme"] = written
        document = with_record(with_frame(scheme, document, mistakes), mistakes)
        path = path_of(document, scheme, mistakes)
        start = started(scheme, start, document, mistakes)
        start = with_ledger(scheme, start, asked, document["t0"] if not wrong("t0") else time_of(start), mistakes)
        observe, labels = observers(document, scheme, start, model.observables, mistakes)
        reachable(document.get("until"), observe, asked, mistakes)
        _check_sweep(model.entry, scheme, document.get("sweep"), mistakes)
    if mistakes:
        raise Mistakes(mistakes, lines, source)
    assert model is not None
    assert scheme is not None
    assert start is not None
    return Prepared(document, model, scheme, start, observe, labels, path)


def _with_numbers(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the numbers of a run that were not given."""
    filled = DEFAULTS | dict(document)
    if "every" not in filled and is_integer(filled["steps"]) and filled["steps"] > 0:
        filled["every"] = -(-filled["steps"] // _LOOKS)
    bath = document.get("bath")
    overdamped = isinstance(bath, Mapping) and "mobility" in bath
    for table, key, value in ((("bath", "metropolised", False) if overdamped else ("bath", "splitting", "BAOAB")), ("output", "final", True)):
        if isinstance(filled.get(table, {}), Mapping) and (table in document or table == "output"):
            filled[table] = {**filled.get(table, {}), key: filled.get(table, {}).get(key, value)}
    return filled


def _known(name: str, mistakes: list[Mistake]) -> Model | None:
    if name.endswith(".py") or ".py:" in name or "/" in name:
        text = f"expected a system of the gallery, got {shown(name)}. A run file never names a file, so it cannot execute code. "
        mistakes.append(Mistake(("system", "name"), text + "A Python model is run from the command line: `bismut run my_model.py:system`."))
        return None
    try:
        return from_gallery(name)
    except BismutError as problem:
        mistakes.append(Mistake(("system", "name"), str(problem)))
        return None


def _attempt(path: tuple[str, ...], make: Callable[[], Any], mistakes: list[Mistake]) -> Any:
    """make(), or None and a mistake; functions of the user may fail in any way."""
    try:
        return make()
    except Mistakes as problem:
        mistakes += [mistake for _, mistake in problem.placed]
    except BismutError as problem:
        mistakes.append(Mistake(path, str(problem)))
    except (Exception, SystemExit) as problem:
        mistakes.append(Mistake(path, f"this cannot be built: {type(problem).__name__}: {reason_of(problem)}."))
    return None


# The system.


def _with_parameters(entry: Entry, named: Mapping[str, Any]) -> dict[str, Any]:
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


def _built(entry: Entry, parameters: Mapping[str, Any], mistakes: list[Mistake]) -> System | None:
    known, before = parameters_of(entry.build), len(mistakes)
    for name, value in parameters.items():
        path = ("system", "parameters", name)
        if name not in known:
            mistakes.append(Mistake(path, f"{entry.name} has no parameter {name!r}. {nearest(name, known)}"))
        elif expected := _expected(known[name], value):
            mistakes.append(Mistake(path, f"expected {expected}, as in the default {shown(_as_written(known[name].default))}, got {shown(value)}."))
    for name, parameter in known.items():
        if parameter.default is Parameter.empty and name not in parameters:
            mistakes.append(Mistake(("system", "parameters"), f"{name} is missing; it has no default. Give it with --set {name}=..."))
    if len(mistakes) > before:
        return None
    arguments = {name: _argument(known[name].default, value) for name, value in parameters.items()}
    return _attempt(("system",), lambda: _of_type(System, entry.build(**arguments), f"{entry.name} must be a System or return one"), mistakes)


def _of_type(kind: Any, returned: Any, expected: str) -> Any:
    """What a function of the user returned, if it is of the right type; a forgotten `return` gives None."""
    if not isinstance(returned, kind):
        got = "None. Is a return missing?" if returned is None else f"{type(returned).__name__}."
        raise BismutError(f"{expected}, got {got}")
    return returned


def _expected(parameter: Parameter, value: Any) -> str | None:
    """What would fit a parameter, if the value does not."""
    if value == "none":
        return None if parameter.default is None or "None" in str(parameter.annotation) else "a value"
    rule = by_default(parameter)
    return None if rule.holds(value) else rule.expected


def _argument(default: Any, value: Any) -> Any:
    """A written value as the builder takes it."""
    if value == "none":
        return None
    if isinstance(value, list):
        return tuple(float(part) if is_number(part) else _argument(None, part) for part in value)
    return float(value) if isinstance(default, float) and is_number(value) else value


def _check_sweep(entry: Entry, scheme: Scheme, sweep: Any, mistakes: list[Mistake]) -> None:
    wrong = {mistake.path for mistake in mistakes}
    for name, values in sweep.items() if isinstance(sweep, Mapping) else ():
        one = values[:1] if ("sweep", name) not in wrong else [1.0]
        built_in = name in entry.parameters and name not in (scheme.system.parameters or {})
        before = len(mistakes)
        _attempt(("sweep", name), lambda name=name, one=one: variants(scheme, grid({name: one})), mistakes)
        if built_in and len(mistakes) > before:
            text = f"{name} is built into the functions of {entry.name}. Give it as parameters={{{name!r}: {name}}} and let them name `parameters`."
            mistakes[-1] = Mistake(("sweep", name), text)


# The scheme.


def _own_scheme(entry: Entry, system: System) -> Scheme:
    return _of_type(Scheme, entry.scheme(system), "scheme(system) must return a scheme such as bm.Midpoint(system)")


def _own_start(entry: Entry, scheme: Scheme) -> State | Maxwell:
    return _of_type(State | Maxwell, entry.start(scheme), "start(scheme) must return scheme.start(q, velocity=... | temperature=...)")


def _table_of(scheme: Scheme) -> dict[str, Any] | None:
    """The table [scheme] of a scheme that the gallery chose, if a table can say it."""
    name = SCHEMES.name_of(type(scheme))
    if name is None:
        return None
    options = {key: getattr(scheme, key, None) for key in SCHEME.table(name).keys if key != "name"}
    return {"name": name} | {key: value for key, value in options.items() if isinstance(value, bool | int | float | str)}


def _scheme(entry: Entry, system: System, document: Mapping[str, Any]) -> Scheme:
    chosen, bath = document.get("scheme"), document.get("bath")
    if bath is None and chosen is None:
        return _own_scheme(entry, system)
    if bath is None:
        assert chosen is not None
        return _of_type(Scheme, _maker(chosen)(system), f"{chosen['name']} must be a scheme")
    if "mobility" in bath:
        if chosen is not None:
            raise Mistakes([Mistake(("scheme", "name"), "overdamped motion is a scheme of its own. Omit the scheme, or the mobility.")], {})
        return Brownian(system.without_noise(), bath["temperature"], bath["mobility"], metropolised=bath.get("metropolised", False))
    name = bath.get("splitting", "BAOAB")
    splitting = SPLITTINGS[name]
    if isinstance(splitting, type):  # over an action, as GLA and Metropolised are
        splitting = splitting(Verlet if chosen is None else _action(chosen, name))
    elif chosen is not None:
        text = f"a bath with splitting {name} has its own pieces. Omit the scheme, or choose splitting GLA or Metropolised."
        raise Mistakes([Mistake(("scheme", "name"), text)], {})
    settings = {key: bath.get(key) for key in ("friction", "rate", "own_noise")}
    return Langevin(system, temperature=bath["temperature"], splitting=splitting, **settings)


def _action(chosen: Mapping[str, Any], splitting: str) -> Callable[[System], Any]:
    is_action = lambda kind: isinstance(kind, type) and issubclass(kind, Action)
    if not is_action(SCHEMES[chosen["name"]]):
        actions = ", ".join(name for name, kind in SCHEMES.items() if is_action(kind))
        raise Mistakes([Mistake(("scheme", "name"), f"{splitting} works over an action ({actions}), got {chosen['name']}.")], {})
    return _maker(chosen)


def _maker(chosen: Mapping[str, Any]) -> Callable[[System], Any]:
    """The class of a scheme with what was chosen about it."""
    name, options = chosen["name"], {key: value for key, value in chosen.items() if key != "name"}
    if not options:
        return SCHEMES[name]
    action = partial(SCHEMES[name], **options)
    vars(action)["__name__"] = name  # by which a splitting calls its action
    return action
