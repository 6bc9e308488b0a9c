"""`page`: a program that runs in a browser, with its bodies, plots and sliders, in one file; or several, side by side on one path.

scheme, start, step   ↦   top.html:  WebAssembly in a worker, parameters as memory, no Python and no network
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path as File
from typing import Any

import numpy as np

from bismut.drawing import Drawing
from bismut.ensembles.checks import check_name
from bismut.ensembles.observable import Observable
from bismut.errors import BismutError, DomainError
from bismut.gallery import Entry
from bismut.mechanics import Maxwell, Scheme, State, System, box_of
from bismut.noise import Path
from bismut.store import write_file
from bismut.views.document import document, file, inline
from bismut.views.live_poses import Poses, poses
from bismut.views.running_program import PageRun, Slider, controls_of, default_observables, page_run, path_limits, program_data
from bismut.views.scene import check, fixed, packed

_A_SECOND = 200  # steps of a page at first
_SETUP = "# Here {what} are those that were given to bm.page."
_GALLERY = """import jax; jax.config.update("jax_enable_x64", True)
import bismut as bm
from bismut.gallery import entry

model = entry({name!r})
scheme = model.scheme(model.system({parameters!r}))
start = model.start(scheme)"""


@dataclass(frozen=True, repr=False)
class Page:
    """A page that runs. A notebook shows it; `save(path)` writes it to one file that needs nothing else, and no network.

    programs  what the engine of the page works on, one for each scheme
    shown     what is seen of them: title, drawings, where sliders and speed begin
    undrawn   why no bodies are drawn, if none are
    """

    programs: list[dict[str, Any]] = field(repr=False)
    shown: dict[str, Any] = field(repr=False)
    undrawn: str | None = None

    @property
    def program(self) -> dict[str, Any]:
        """That of the first scheme; sliders (`controls`) are the same in all."""
        return self.programs[0]

    @cached_property
    def html(self) -> str:
        """The page as text."""
        drawn = self.undrawn is None
        script = file("bodies.js") + file("live_bodies.js") + file("plots.js") + file("script.js") + file("stage.js") + file("running.js")
        parts = {"PROGRAMS": inline(self.programs), "SHOWN": inline(self.shown), "WORKER": file("worker.js"), "SCRIPT": script}
        return document("running.html", self.shown["title"], library=drawn, **parts)

    @property
    def code_size(self) -> int:
        """Bytes of WebAssembly."""
        modules = [module for one in self.programs for module in (one["program"], one["start"]["program"])]
        return sum(module["bytes"] for module in modules if module is not None)

    def save(self, path: str | File) -> File:
        """Write the page, and return where it is."""
        return write_file(path, self.html.encode())

    def __repr__(self) -> str:
        return f"Page({self.shown['title']}: {self.code_size / 1e3:.0f} kB of WebAssembly, {len(self.program['controls'])} sliders)"

    def _repr_html_(self) -> str:
        frame = f'title="{escape(self.shown["title"])}, running" style="width:100%;height:640px;border:0" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{escape(self.html, quote=True)}"></iframe>'


def page(
    scheme: Scheme | Mapping[str, Scheme],
    start: Any,
    *,
    step: float,
    controls: Mapping[str, Any] | None = None,
    observe: Mapping[str, Callable | Observable] | None = None,
    trajectories: int = 1,
    seed: Any = None,
    noise: Path | None = None,
    t0: float = 0.0,
    picture: Callable[[System, Any], Drawing] | None = None,
    box: Any = None,
    title: str | None = None,
    setup: str | None = None,
    path: str | File | None = None,
    large: bool = False,
) -> Page:
    """A page that runs a scheme in a browser, without Python: in a notebook as it is, otherwise page(..., path="top.html"). Several schemes,
    {"variational": a, "Euler": b}, run side by side on one path, with their curves in the same plots.

    scheme        what makes the steps; the native engine must have code for it. Or several with their names
    start         where trajectories start: scheme.start(...), a State, or one for each trajectory; of several schemes one for all, or {name: start}
    step          the step size h at first
    controls      parameters that get sliders, with their ranges, {"weight": (0, 10), "noise": None}; None for a range of our own. By default every
                  parameter of a few numbers, of the system and of its bath, that is the same in all schemes
    observe       what is plotted, as for `simulate`: names and functions of a State; by default the energy, momentum maps, invariants, and the
                  temperature where there is a bath
    trajectories  how many at first
    seed          of the noise at first; or noise=, a path of another kind, whose seed then stays, and at whose end the page stops
    t0            the time at which trajectories begin
    picture       how the system is drawn: of the system and q, time along the first axis, a Drawing
    box           the periodic box, if the system does not define it
    setup         Python that makes `scheme` (or `schemes`), `start` and, if it is given, `noise`, with which "copy as Python" begins
    path          a file to write the page to
    large         whether to write it however large its code is, and however long a step of all trajectories takes; otherwise it is refused with what
                  it would cost
    """
    if not np.isfinite(step) or step <= 0:
        raise DomainError(f"step must be positive and finite, got {step!r}.")
    if isinstance(trajectories, bool) or trajectories < 1:
        raise DomainError(f"trajectories must be a whole number ≥ 1, got {trajectories!r}.")
    schemes = {"": scheme} if isinstance(scheme, Scheme) else _named(scheme)
    starts = _starts(start, schemes)
    for one in schemes.values():
        one.check_step(step)
    runs = [page_run(one, starts[name], seed, noise, t0) for name, one in schemes.items()]
    limits = [] if noise is None else [path_limits(run.scheme, run.path, step) for run in runs]
    drawings = [_poses(run, picture, box) for run in runs]
    undrawn = next((why for _, why in drawings if why is not None), None)
    live = [None if undrawn else poses for poses, _ in drawings]
    sliders = controls_of(list(schemes.values()), controls)
    observe = default_observables(list(schemes.values())) if observe is None else observe
    batch = _least([run.starts.batch[0] if run.starts.batch else None for run in runs])
    most = _least([batch, *(one.trajectories for one in limits)])
    first_count = trajectories if most is None else min(trajectories, most)
    named = zip(schemes, runs, live, strict=True)
    programs = [program_data(run, observe, sliders, poses, first_count, large) | {"name": name} for name, run, poses in named]
    _check_sizes(programs)
    first = runs[0]
    about = f"{first.scheme.title} on {first.scheme.system.space}" if isinstance(scheme, Scheme) else f"{', '.join(schemes)}"
    shown = {
        "title": title or about,
        "subtitle": about if title and isinstance(scheme, Scheme) else "",
        "step": float(step),
        "steps": _A_SECOND,
        "trajectories": first_count,
        "most": min(most or 10_000, 10_000) if batch is None else most,
        "ends": _least([one.steps for one in limits]),
        "any_step": all(one.any_step for one in limits),
        "seed": None if first.seed is None else str(first.seed),
        "drawings": None if undrawn else [_drawing_data(poses) for poses in live if poses is not None],
        "undrawn": undrawn,
        "script": _script(setup, isinstance(scheme, Scheme), starts, isinstance(start, Mapping), sliders, t0, noise is not None),
    }
    page = Page(programs, shown, undrawn)
    if path is not None:
        page.save(path)
    return page


def _named(schemes: Mapping[str, Scheme]) -> dict[str, Scheme]:
    wrong = not isinstance(schemes, Mapping) or not schemes or not all(isinstance(one, Scheme) for one in schemes.values())
    if wrong:
        raise DomainError(f'page takes a scheme, or several with their names, {{"variational": bm.Verlet(system), ...}}, got {schemes!r}.')
    for name in schemes:
        check_name(name)
    return dict(schemes)


def _starts(start: Any, schemes: Mapping[str, Scheme]) -> dict[str, Any]:
    """The start of each scheme."""
    if not isinstance(start, Mapping):
        return dict.fromkeys(schemes, start)
    if set(start) != set(schemes):
        raise DomainError(f"start must be one for all schemes, or have their names, {', '.join(schemes)}; it has {', '.join(map(str, start))}.")
    return dict(start)


def _check_sizes(programs: list[dict[str, Any]]) -> None:
    for same in zip(*(one["observables"] for one in programs), strict=True):
        sizes = [one["size"] for one in same]
        if len(set(sizes)) > 1:
            raise DomainError(f"observe[{same[0]['name']!r}] has {sizes} numbers under the schemes; in one plot each must have as many.")


def _least(values: list[int | None]) -> int | None:
    """The least of those that are numbers."""
    return min((value for value in values if value is not None), default=None)


def page_of(model: Entry, parameters: Mapping[str, Any] | None = None, setup: str | None = None, step: float | None = None, **settings: Any) -> Page:
    """The page of a gallery system; `settings` are those of `page`."""
    scheme = model.scheme(model.system(parameters))
    if setup is None:
        setup = _GALLERY.format(name=model.name, parameters=dict(parameters or {}))
        setup += "\n# `noise` is the path that was given to the page." if settings.get("noise") is not None else ""
    defaults = {"title": model.name, "picture": model.picture, "setup": setup}
    return page(scheme, model.start(scheme), step=model.step if step is None else step, **defaults | settings)


def _poses(run: PageRun, picture: Callable | None, box: Any) -> tuple[Poses | None, str | None]:
    """How bodies are drawn, or why they are not."""
    try:
        live = poses(run.scheme.system, run.starts.one(run.path), picture)
    except BismutError as problem:
        return None, f"No bodies are drawn: {str(problem).rstrip('.')}."
    sides = box_of(box)
    if sides is not None:
        live = live._replace(drawing=live.drawing._replace(box=(*sides.lengths, *[np.inf] * (3 - len(sides.lengths)))))
    check(live.drawing, 1)
    return live, None


def _drawing_data(live: Poses) -> dict[str, Any]:
    return fixed(live.drawing) | {
        "turns": live.drawing.R is not None,
        "size": len(live.constant),
        "constant": packed(live.constant.astype("<f8")),
        "places": packed(live.places.astype("<i4")),
        "columns": packed(live.columns.astype("<i4")),
        "factors": packed(live.factors.astype("<f8")),
    }


def _script(
    setup: str | None, single: bool, starts: Mapping[str, Any], own_starts: bool, sliders: list[Slider], t0: float, own_noise: bool
) -> dict[str, Any]:
    """What "copy as Python" begins with. Momenta stay those of the start, whatever the parameters; random ones are drawn anew."""
    given = ["`scheme`" if single else "`schemes`", "`start`", *(["`noise`"] if own_noise else [])]
    runs = []
    for name, start in starts.items():
        place = f"[{json.dumps(name, ensure_ascii=False)}]"
        state = "" if isinstance(start, Maxwell) or type(start) is State else ".state"
        runs.append({"scheme": "scheme" if single else f"schemes{place}", "start": f"start{place if own_starts else ''}{state}"})
    return {
        "setup": setup or _SETUP.format(what=f"{', '.join(given[:-1])} and {given[-1]}"),
        "runs": runs,
        "parameters": {name: [c.value for c in sliders if c.name == name] for name in dict.fromkeys(c.name for c in sliders)},
        "scalars": sorted({c.name for c in sliders if c.entry is None}),
        "t0": t0,
        "noise": own_noise,
    }
