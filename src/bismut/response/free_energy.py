"""Free-energy differences: from work done forward and backward, and by integration along the parameter.

    ΔF = F(b) − F(a),       F(λ) = −kT ln ∫ e^{−H(λ)/kT}
    work          λ moves from a to b in a time T, and back; W is that of the ledger       (`work_statistics`)
    integration   ΔF = ∫_a^b ⟨∂U/∂λ⟩_λ dλ,  by the nodes of Clenshaw and Curtis, 5 of them among 9

Under `Metropolised` work obeys Jarzynski's equality at every step: moves are made with the clock at rest, and the clock moves with the state at rest.
So it is under `Brownian(metropolised=True)`. Under other splittings ΔF is off by O(h²), and under plain `Brownian`, whose work is taken at the end of
each step and whose points are those of a step with one force, by O(h): a spring from 1 to 4 in t = 2 by −0.013 kT at h = 0.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bismut.arguments import Rule, checked, integer, is_number
from bismut.ensembles import complete_run, request, time_average
from bismut.ensembles.checks import RUN
from bismut.ensembles.observable import Observable
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, DomainError
from bismut.findings.statistics import SURE
from bismut.flows import Brownian, Langevin
from bismut.formatting import table, with_error
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener
from bismut.process import check_process
from bismut.registry import PROVIDERS
from bismut.response.covariance import why_not
from bismut.response.parameters import in_mass, in_potential, in_temperature, parameters_of
from bismut.response.protocol import between, moved
from bismut.response.work_statistics import Difference, bennett, checked_work, crossing, jarzynski, needed, resolved

_NODES = 9  # of which every second one is a rule of its own
_ELSEWHERE = {"the mass": in_mass, "the temperature": in_temperature}  # what a protocol of the potential leaves as it is, and F does not
_ENDS = Rule("two different numbers (a, b)", lambda value: len(np.shape(value)) == 1 and len(value) == 2 and all(map(is_number, value)))


@dataclass(frozen=True)
class FreeEnergy:
    """ΔF by each way that applies.

    value, stderr  by Bennett's ratio; where there is no backward work by Jarzynski's average; where there is no work by integration
    ways           by name: "bennett", "crossing", "jarzynski", "jarzynski_backward", "integration"
    forward, backward  the work of single trajectories; backward is the work done on the way from b to a
    dissipated     mean work less ΔF, forward and backward
    agree          whether all ways that are reliable agree; None where fewer than two are, so that nothing can be said
    warnings       what makes a way unreliable, with the number that shows it
    """

    ways: dict[str, Difference]
    temperature: float
    dissipated: tuple[float, float]
    agree: bool | None
    warnings: tuple[str, ...]
    subject: str
    forward: np.ndarray | None = field(repr=False, default=None)
    backward: np.ndarray | None = field(repr=False, default=None)

    @property
    def best(self) -> str:
        return next(name for name in ("bennett", "jarzynski", "integration") if name in self.ways)

    @property
    def value(self) -> float:
        return self.ways[self.best].value

    @property
    def stderr(self) -> float:
        return self.ways[self.best].stderr

    def __repr__(self) -> str:
        verdicts = {True: "; the ways agree", False: "; THE WAYS DO NOT AGREE", None: "; NO TWO RELIABLE WAYS"}
        verdict = "" if len(self.ways) < 2 else verdicts[self.agree]
        lines = [f"{self.subject}: ΔF = {with_error(self.value, self.stderr)} by {self.best}{verdict}"]
        for name, one in self.ways.items():
            lines.append(f"  {name:<18} {with_error(one.value, one.stderr):>22}   {one.note}")
        known = [f"{side} {value:.3g}" for side, value in zip(("forward", "backward"), self.dissipated, strict=True) if not math.isnan(value)]
        lines += [f"  dissipated work: {', '.join(known)}, kT = {self.temperature:g}"] if known else []
        return "\n".join([*lines, *(f"  unreliable: {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        rows = [(name, with_error(one.value, one.stderr), one.note) for name, one in self.ways.items()]
        return table(repr(self).splitlines()[0], rows, ("way", "ΔF", ""))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        plain = lambda x: None if isinstance(x, float) and math.isnan(x) else x
        ways = {name: {"value": plain(one.value), "stderr": plain(one.stderr), "note": one.note} for name, one in self.ways.items()}
        rest = {"temperature": self.temperature, "dissipated": [plain(x) for x in self.dissipated], "agree": self.agree}
        return {"subject": self.subject, "best": self.best, "ways": ways} | rest | {"warnings": list(self.warnings)}

    def figure(self, file: str | Path | None = None, *, dark: bool = False) -> Any:
        """The distributions of work, which cross at ΔF; written to a file if one is given. Needs matplotlib."""
        return PROVIDERS["free_energy"](self, file, dark)


def free_energy_of_work(forward: Any, backward: Any = None, *, temperature: float) -> FreeEnergy:
    """ΔF from the work of trajectories, measured or simulated.

    forward      work done on the way from a to b, from equilibrium at a
    backward     work done on the way back, from equilibrium at b; without it Jarzynski's average alone is taken
    temperature  kT
    """
    if not is_number(temperature) or not temperature > 0:
        raise DomainError(f"temperature must be a positive number, kT, got {temperature!r}.")
    there = checked_work(forward, "forward")
    back = None if backward is None else checked_work(backward, "backward")
    return _report(there, back, float(temperature), {}, f"{len(there)} trajectories forward, {0 if back is None else len(back)} backward")


@checked(**(RUN | {"between": _ENDS, "trajectories": integer(2).but("Errors are over independent trajectories.")}))
def free_energy(
    scheme: Scheme,
    start: Any,
    *,
    parameter: str,
    between: Any,
    step: float,
    steps: int,
    trajectories: int = 1000,
    burn_in: int,
    seed: int = 0,
    integrate: bool = True,
) -> FreeEnergy:
    """F(b) − F(a) of a parameter of the potential, from the ledger of protocols forward and backward, and by integration.

    parameter     a key of the system's parameters, one number, that stands in the potential, and not in masses, constraints or kT; on
                  frictions and mobilities F does not depend, and they stay as they are
    between       (a, b): where it moves, linearly in time
    step, steps   of the protocol in each direction
    trajectories  in each direction; burn_in: steps to equilibrium at a and at b before them, from `start`
    integrate     whether ⟨∂U/∂λ⟩ is integrated as well, with as many steps as a direction takes
    """
    check_process()
    a, b = (float(value) for value in between)
    if a == b:
        raise DomainError(f"between must be two different values of {parameter!r}, got {a:g} twice.")
    if not isinstance(scheme, Langevin | Brownian):
        raise BismutError(f"free_energy needs Langevin or Brownian motion, which start from equilibrium, got {scheme.title}.")
    driven = moved(scheme, parameter)
    chosen = parameters_of(scheme, [parameter])
    if why := why_not(scheme, chosen):
        raise BismutError(f"free_energy needs a stationary state exp(−H/kT), but there is {why}.")
    if place := next((name for name, stands in _ELSEWHERE.items() if stands(scheme, chosen)), ""):
        raise BismutError(f"free_energy moves a parameter of the potential, but {parameter!r} stands in {place} too. Give each a name of its own.")
    if not in_potential(scheme, chosen):
        raise BismutError(f"free_energy moves a parameter of the potential, but the potential does not depend on {parameter!r}.")
    kT, settings = float(scheme.kT(0.0)), {"step": step, "trajectories": trajectories}
    there = _work(driven, start, (a, b), settings, steps, burn_in, Wiener(seed), 0)
    back = _work(driven, start, (b, a), settings, steps, burn_in, Wiener(seed), 2 * trajectories)
    _check_work(there, back, (a, b), parameter, kT, settings)
    ways = {"integration": _integrated(scheme, start, parameter, a, b, settings, steps, burn_in, seed)} if integrate else {}
    subject = f"{scheme.title} on {scheme.space}, {parameter}: {a:g} → {b:g} in t = {steps * step:g}, {len(there)} + {len(back)} trajectories"
    failed = 2 * trajectories - len(there) - len(back)
    more = (f"{failed} of {2 * trajectories} trajectories failed and are left out",) if failed else ()
    return _report(there, back, kT, ways, subject, more)


def _work(driven: Scheme, start: Any, ends: tuple[float, float], settings: dict, steps: int, burn_in: int, path: Wiener, first: int) -> np.ndarray:
    """The work of trajectories from equilibrium at the first end to the second."""
    a, b = ends
    n, duration = settings["trajectories"], steps * settings["step"]
    at_rest = between(driven, a, a, duration)
    common = {**settings, "first_trajectory": first}
    settled = complete_run(request(at_rest, start, steps=max(burn_in, 1), path=path, **common)).final
    assert settled is not None
    finite = np.all([np.isfinite(np.asarray(leaf)).reshape(n, -1).all(1) for leaf in jax.tree.leaves(settled)], 0)
    moving = between(driven, a, b, duration)
    rows = jax.tree.map(lambda leaf: np.asarray(leaf)[finite], State(settled.q, settled.p))
    begun = moving.start(rows.q, momentum=rows.p, ledger=True)
    common["trajectories"] = int(finite.sum())
    if not finite.any():
        return np.empty(0)
    run = complete_run(request(moving, begun, steps=steps, path=path.shift(max(burn_in, 1)), **common))
    assert run.final is not None
    assert run.final.ledger is not None
    work = np.asarray(run.final.ledger.work)
    return work[np.isfinite(work)]


def _check_work(there: np.ndarray, back: np.ndarray, ends: tuple[float, float], name: str, kT: float, settings: dict) -> None:
    """Refuse work of which e^{−W/kT} cannot be formed: that of a step beyond the limit of stability grows by a factor in each of them."""
    for work, (begin, end) in ((there, ends), (back, ends[::-1])):
        if len(work) >= 2 and resolved(work, kT):
            continue
        largest = f"up to {np.abs(work).max() / kT:.2g} kT" if len(work) >= 2 else f"finite in {len(work)} of {settings['trajectories']} trajectories"
        raise BismutError(
            f"The work on the way of {name!r} from {begin:g} to {end:g} is {largest}: step = {settings['step']:g} is unstable there, and no ΔF "
            "follows. Take a smaller step, or ends that are nearer to each other."
        )


def _integrated(scheme: Scheme, start: Any, name: str, a: float, b: float, settings: dict, steps: int, burn_in: int, seed: int) -> Difference:
    nodes, weights, rough = clenshaw_curtis(_NODES)
    values = a + (b - a) * nodes
    n = max(settings["trajectories"] // _NODES, 2)
    slope = Observable(f"d/d{name}", _Slope(name))
    run = complete_run(
        request(
            scheme,
            start_at(scheme, start, 0.0).start,
            step=settings["step"],
            steps=max(steps, burn_in),
            burn_in=burn_in,
            trajectories=n,
            path=Wiener(seed).shift(2**30),
            sweep={name: values},
            observe={"slope": time_average(slope, every=1)},
            keep_final=False,
        )
    )
    mean, error = np.asarray(run.observables["slope"].mean), np.asarray(run.observables["slope"].stderr)
    value, half = (b - a) * float(weights @ mean), (b - a) * float(rough @ mean[::2])
    # All nodes see one noise: their errors may be correlated, and add up at worst.
    stderr = abs(b - a) * float(np.sum(np.abs(weights) * error))
    doubt = f"rules of {_NODES} and of {_NODES // 2 + 1} nodes differ by {abs(value - half):.2g}" if abs(value - half) > 4 * stderr else ""
    return Difference(value, stderr, f"{_NODES} nodes of {n} trajectories; {_NODES // 2 + 1} of them give {half:.5g}", doubt)


@dataclass(frozen=True)
class _Slope:
    """∂U/∂λ at a state."""

    name: str

    def __call__(self, system, state, t):
        parameters = system.parameters
        return jax.grad(lambda x: system.replace(parameters={**parameters, self.name: x}).potential(state.q, t))(parameters[self.name])


def clenshaw_curtis(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1], and the weights of every second node alone: both exact for polynomials through their nodes."""
    nodes = 0.5 * (1 - np.cos(np.pi * np.arange(n) / (n - 1)))

    def weights(x: np.ndarray) -> np.ndarray:
        powers = np.arange(len(x))
        T = np.cos(powers[:, None] * np.arccos(np.clip(2 * x - 1, -1, 1)))
        moments = np.array([0.0 if k % 2 else 1 / (1 - k**2) for k in powers])
        return np.linalg.solve(T, moments)

    return nodes, weights(nodes), weights(nodes[::2])


def _report(
    there: np.ndarray, back: np.ndarray | None, kT: float, more: dict[str, Difference], subject: str, said: tuple[str, ...] = ()
) -> FreeEnergy:
    ways = {} if back is None else {"bennett": bennett(there, back, kT), "crossing": crossing(there, back, kT)}
    ways["jarzynski"] = jarzynski(there, kT)
    dissipated = (math.nan, math.nan)
    warnings, few = list(said), []
    if back is not None:
        ways["jarzynski_backward"] = jarzynski(back, kT, -1)
        difference = ways["bennett"].value
        dissipated = (float(there.mean()) - difference, float(back.mean()) + difference)
        for name, other, sign, own in (("jarzynski", back, -1, there), ("jarzynski_backward", there, 1, back)):
            count = needed(other, sign * difference, kT)
            if count > 0.1 * len(own):
                few.append(name)
                warnings.append(f"{name} needs about {count:.2g} trajectories, e to the dissipated work of the other direction, and has {len(own)}")
    else:
        dissipated = (float(there.mean()) - ways["jarzynski"].value, math.nan)
    ways |= more
    warnings += [f"{name} {one.doubt}" for name, one in ways.items() if one.doubt]
    sound = [one for name, one in ways.items() if not one.doubt and name not in few and math.isfinite(one.value)]
    pairs = [(x, y) for i, x in enumerate(sound) for y in sound[:i]]
    agree = all(abs(x.value - y.value) <= SURE * math.hypot(x.stderr, y.stderr) for x, y in pairs) if pairs else None
    return FreeEnergy(ways, kT, dissipated, agree, tuple(warnings), subject, there, back)
