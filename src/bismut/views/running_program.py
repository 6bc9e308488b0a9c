"""What a page that runs holds: programs in WebAssembly and the numbers they work on, as plain data.

    (scheme, path) = functions + numbers;      functions ↦ module,    numbers ↦ memory, of which sliders and the seed change some entries

Which entry a parameter is, is found by changing it. Several schemes are several programs, on one path: one slider writes into all of them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.compile_cache import partition
from bismut.engines.engine import Refusal, Watch
from bismut.engines.native.wasm import WasmProgram, lower_to_wasm
from bismut.ensembles.checks import chosen_path
from bismut.ensembles.observable import Observable, measure, value_of
from bismut.ensembles.starts import StartStates, maxwell_task, start_at
from bismut.ensembles.sweep import parameters_of, with_parameters
from bismut.ensembles.task import build_task, increments_of
from bismut.errors import BismutError, DomainError, nearest
from bismut.mechanics import Maxwell, Scheme, State
from bismut.noise import Path, Wiener
from bismut.views.live_poses import Poses
from bismut.views.scene import packed

COMPONENTS = 6  # curves of a plot, and entries of a parameter that get sliders
LONG = 6_500_000  # characters of code: LLVM takes longer than half a minute, and the module is above a megabyte
DEAR = 3e7  # operations of a step of all trajectories: a tenth of a second


class Slider(NamedTuple):
    """A slider: one entry of a parameter."""

    name: str
    entry: int | None
    value: float
    low: float
    high: float


class PageRun(NamedTuple):
    """What a page runs, checked: where it starts, with which noise; `seed` is None where the path is the user's own."""

    scheme: Scheme
    starts: StartStates
    path: Path
    seed: int | None
    t0: float


def page_run(scheme: Scheme, start: Any, seed: Any, path: Path | None, t0: float) -> PageRun:
    if path is not None and seed is not None:
        raise DomainError("page takes seed= or noise=, not both: a path has its own seed.")
    starts = start_at(scheme, start, t0)
    if isinstance(starts.start, Maxwell) and starts.batch:
        raise DomainError("A page draws momenta at one point. Give start.q one point, or momenta for each of many.")
    if path is not None:
        return PageRun(scheme, starts, path, None, t0)
    known = Wiener(0 if seed is None else seed)
    return PageRun(scheme, starts, known, known.seed_number, t0)


class PathLimits(NamedTuple):
    """How far a path of the user's own can drive a run: so many steps, so many trajectories, and whether at other step sizes. None is no end."""

    steps: int | None
    trajectories: int | None
    any_step: bool


def path_limits(scheme: Scheme, path: Path, step: float) -> PathLimits:
    """What the path accepts, found by asking it; refused if that is nothing."""

    def drives(steps: int, trajectories: int, h: float = step) -> bool:
        try:
            chosen_path(None, path, scheme, step=h, steps=steps, trajectories=trajectories)
        except BismutError:
            return False
        return True

    chosen_path(None, path, scheme, step=step, steps=1, trajectories=1)
    return PathLimits(_largest(lambda n: drives(n, 1)), _largest(lambda n: drives(1, n)), drives(1, 1, 2 * step))


def _largest(fits: Callable[[int], bool], most: int = 2**40) -> int | None:
    """The largest whole number that fits, where all up to it do; None if there is none below `most`."""
    if fits(most):
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def controls_of(schemes: Sequence[Scheme], asked: Mapping[str, Any] | None) -> list[Slider]:
    """Sliders: those asked for, {"weight": (0, 10)} or {"weight": None} for a range of our own; by default every parameter that is a few numbers and
    has one value in all schemes that know it: one in which they differ is what they are compared for."""
    known: dict[str, np.ndarray] = {}
    differing = set()
    for scheme in schemes:
        for name, value in parameters_of(scheme).items():
            if not np.array_equal(known.setdefault(name, np.asarray(value)), value):
                differing.add(name)
    few = {name: value for name, value in known.items() if value.dtype.kind == "f" and 0 < value.size <= COMPONENTS and name not in differing}
    for name in asked or {}:
        if name in differing:
            raise DomainError(
                f"controls names {name!r}, whose value differs between the schemes, so that one slider cannot stand for it. Leave it out."
            )
        if name not in few:
            why = f"is no such number ({known[name].size} entries of {known[name].dtype})" if name in known else "is not one of them"
            raise DomainError(
                f"controls names {name!r}, but a slider moves a parameter of at most {COMPONENTS} numbers, and it {why}. {nearest(name, few)}"
            )
    sliders = []
    for name in few if asked is None else asked:
        values, span = few[name], (asked or {}).get(name)
        for i, value in enumerate(values.flat):
            low, high = _range(float(value)) if span is None else _asked_range(name, span)
            sliders.append(Slider(name, None if values.ndim == 0 else i, float(value), min(low, float(value)), max(high, float(value))))
    return sliders


def _range(value: float) -> tuple[float, float]:
    if value == 0:
        return 0.0, 1.0
    wanted = 2.5 * abs(value)
    size = 10.0 ** np.floor(np.log10(wanted))
    most = next(float(f"{k * size:.12g}") for k in (1, 2, 5, 10) if k * size >= 0.999 * wanted)
    return (0.0, most) if value > 0 else (-most, most)


def _asked_range(name: str, span: Any) -> tuple[float, float]:
    try:
        low, high = map(float, span)
    except (TypeError, ValueError):
        raise DomainError(f"controls[{name!r}] must be a pair (lowest, highest), or None, got {span!r}.") from None
    if not -np.inf < low < high < np.inf:
        raise DomainError(f"controls[{name!r}] must be a pair (lowest, highest), both finite, got {span!r}.")
    return low, high


def default_observables(schemes: Sequence[Scheme]) -> dict[str, Callable | Observable]:
    """What every scheme has of these: the energy, what symmetries and invariants keep, and the temperature where there is a bath."""
    first, *others = map(_observables, schemes)
    return {name: what for name, what in first.items() if all(name in other for other in others)}


def _observables(scheme: Scheme) -> dict[str, Callable | Observable]:
    from bismut.ensembles.observable import energy, invariant, momentum, temperature

    system = scheme.system
    named: dict[str, Callable | Observable] = {"energy": energy}
    named |= {name: momentum(name) for name in system.symmetries} | {name: invariant(name) for name in system.invariants}
    if "temperature" in vars(scheme) and system.has_lagrangian and system.quadratic:
        named["temperature"] = temperature
    return named


def program_data(
    run: PageRun, observe: Mapping[str, Callable | Observable], sliders: list[Slider], poses: Poses | None, trajectories: int, large: bool
) -> dict[str, Any]:
    """Everything that the engine of a page needs of one scheme, which begins with so many trajectories."""
    scheme, path, dtype = run.scheme, run.path, run.scheme.system.dtype
    example = run.starts.example
    shapes = {name: measure(what, scheme, name, example) for name, what in observe.items()}
    for name, shape in shapes.items():
        if int(np.prod(shape)) > COMPONENTS:
            raise DomainError(f"observe[{name!r}] has {int(np.prod(shape))} numbers; a page plots at most {COMPONENTS}. Observe fewer of them.")
    looks: list[Callable] = [lambda scheme, state, t, what=what: value_of(what, scheme, state, t) for what in observe.values()]
    function = None if poses is None else poses.function
    if function is not None:
        looks.append(lambda scheme, state, t: function(State(state.q, state.p, state.ledger)))
    watches = tuple(Watch(lambda *_: (), lambda memory, state, t, shared, look=look: ((), look(shared[0], state, t))) for look in looks)
    shared = (scheme, path)
    task = build_task(shared, example, dtype, **increments_of(path, dtype), watches=watches)
    program = _checked(lower_to_wasm(task, longest=None if large else LONG, dear=None if large else DEAR, trajectories=trajectories))
    numbers = _numbers(shared)
    start, start_numbers = run.starts.start, []
    data: dict[str, Any] = {"program": _module(program, numbers), "t0": run.t0, "phase": path.phase}
    data["start"], of_start = {"program": None, "leaves": [], "batch": None}, lambda scheme, path: []
    if isinstance(start, Maxwell):
        own, start_numbers = maxwell_task(start, path)
        start_numbers = [np.asarray(x) for x in start_numbers]
        data["start"]["program"] = _module(_checked(lower_to_wasm(own, ["begin"])), start_numbers)
        of_start = lambda scheme, path: [np.asarray(x) for x in maxwell_task(start_at(scheme, start, run.t0).start, path)[1]]  # pyright: ignore[reportArgumentType]
    else:
        leaves = zip(jax.tree.leaves(start), program.manifest["state"], strict=True)
        data["start"] |= {
            "leaves": [_packed(leaf, shape["dtype"]) for leaf, shape in leaves],
            "batch": run.starts.batch[0] if run.starts.batch else None,
        }
    mine = parameters_of(scheme)
    data["controls"] = [
        slider._asdict()
        | {
            "program": _places(numbers, _numbers((changed := _moved(scheme, slider), path)), slider),
            "start": _places(start_numbers, of_start(changed, path), slider),
        }
        if slider.name in mine
        else slider._asdict() | {"program": [], "start": []}  # of another scheme
        for slider in sliders
    ]
    data["seed"] = _seed_places(run, numbers, start_numbers, of_start)
    data["observables"] = [
        {"name": name, "watch": i, "size": int(np.prod(shapes[name])), "code": _code(what), "kept": _is_kept(what)}
        for i, (name, what) in enumerate(observe.items())
    ]
    data["pose"] = len(observe) if function is not None else None
    data["sources"] = [] if poses is None else poses.sources
    data["operations"] = program.operations
    return data


def _checked(program: WasmProgram | Refusal) -> WasmProgram:
    if isinstance(program, Refusal):
        raise BismutError(f"There is no page that runs this: {program.text}.")
    return program


def _numbers(shared: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in partition(shared)[0]]


def _moved(scheme: Scheme, slider: Slider) -> Scheme:
    """The scheme with another value of this parameter."""
    values = np.array(parameters_of(scheme)[slider.name], float)
    values[() if slider.entry is None else np.unravel_index(slider.entry, values.shape)] += 1.0 + abs(slider.value)
    return with_parameters(scheme, {slider.name: values})


def _places(before: list[np.ndarray], after: list[np.ndarray], slider: Slider) -> list[list[int]]:
    """Leaves and entries that a parameter is."""
    if len(before) != len(after) or any(a.shape != b.shape for a, b in zip(before, after, strict=True)):
        raise BismutError(f"There is no page with a slider for {slider.name}: it changes more than numbers. Leave it out of controls=.")
    return [[i, int(k)] for i, (a, b) in enumerate(zip(before, after, strict=True)) for k in np.flatnonzero(a.ravel() != b.ravel())]


def _seed_places(run: PageRun, numbers: list, start_numbers: list, of_start: Callable) -> dict[str, list[list[int]]]:
    """Leaves that are the low (0) and the high (1) word of the seed."""
    if run.seed is None:
        return {"program": [], "start": []}
    places: dict[str, list[list[int]]] = {"program": [], "start": []}
    for word in (0, 1):
        other = Wiener(run.seed ^ (1 << 32 * word))
        for kind, before, after in (
            ("program", numbers, _numbers((run.scheme, other))),
            ("start", start_numbers, of_start(run.scheme, other)),
        ):
            places[kind] += [[i, word] for i, (a, b) in enumerate(zip(before, after, strict=True)) if not np.array_equal(a, b)]
    return places


def _code(what: Any) -> str | None:
    """An observable as Python, where it has a name."""
    return f"bm.{what!r}" if isinstance(what, Observable) else None


def _is_kept(what: Any) -> bool:
    return isinstance(what, Observable) and what.name.startswith(("momentum(", "invariant("))


def _module(program: WasmProgram, numbers: list) -> dict[str, Any]:
    leaves = zip(numbers, program.manifest["numbers"], strict=True)
    return {
        "code": packed(np.frombuffer(program.code, np.uint8)),
        "bytes": len(program.code),
        "manifest": program.manifest,
        "numbers": [_packed(leaf, shape["dtype"]) for leaf, shape in leaves],
    }


def _packed(leaf: Any, dtype: str) -> str:
    return b64encode(np.ascontiguousarray(np.asarray(leaf), dtype).tobytes()).decode()
