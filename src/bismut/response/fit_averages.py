"""Parameters from averages.

    ⟨O_i⟩_θ = o_i ± s_i        θ ← θ + (JᵀWJ)⁻¹ Jᵀ W (o − ⟨O⟩_θ),       J = d⟨O⟩/dθ = ⟨∂O/∂θ⟩ − cov(O, ∂u/∂θ),   W = (s² + σ²)⁻¹

Averages and their derivatives come from one equilibrium run (`covariance`), σ are their errors over independent trajectories. A step is cut where it
would leave what the run has sampled: no average may change by more than a standard deviation of what it is an average of. The errors of the fit are
those of the targets and of the run, (JᵀWJ)⁻¹, and χ² says whether the averages can be matched at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy

from bismut.arguments import Rule, checked, is_number
from bismut.ensembles.checks import RUN
from bismut.ensembles.observable import value_of
from bismut.errors import BismutError, DomainError
from bismut.formatting import table, with_error
from bismut.mechanics import Scheme
from bismut.noise import Wiener
from bismut.process import check_process
from bismut.response import covariance
from bismut.response.parameters import parameters_of

_ROUNDS = 30
_FAR = 1.0  # standard deviations of an observable by which a round may change its average
_NEAR = 1.0  # standard errors: what is left is noise of the run, and the last step takes it in
_UNLIKELY = 1e-4  # probability of χ² below which the averages do not fit
_TARGET = "(function of a State, value) or (function, value, standard error)"


def _is_target(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) in (2, 3) and callable(value[0]) and all(map(is_number, value[1:]))


_TARGETS = Rule(
    f"names and targets, each {_TARGET}", lambda value: isinstance(value, Mapping) and bool(value) and all(map(_is_target, value.values()))
)


@dataclass(frozen=True)
class AveragesFit:
    """Parameters for which averages are what they should be.

    value, stderr  by name
    averages       by name: the average at the fit, its error, the target and its error
    good           whether χ² of the rest has a probability above 1e-4, with `freedom` degrees of freedom
    scheme         the scheme with the fitted numbers
    """

    value: dict[str, Any]
    stderr: dict[str, Any]
    averages: dict[str, tuple[float, float, float, float]]
    chi_squared: float
    freedom: int
    good: bool
    rounds: int
    scheme: Scheme
    subject: str

    def __repr__(self) -> str:
        verdict = "the averages fit" if self.good else "THE AVERAGES DO NOT FIT"
        rest = f"χ² = {self.chi_squared:.3g} of {self.freedom}" if self.freedom else "as many as parameters"
        lines = [f"{self.subject}: {verdict}, {rest}; {self.rounds} rounds"]
        lines += [f"  {name:<16} {with_error(self.value[name], self.stderr[name])}" for name in self.value]
        lines += [f"  {name:<16} {with_error(a, e)}, target {with_error(o, s) if s else f'{o:.6g}'}" for name, (a, e, o, s) in self.averages.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(name, with_error(a, e), f"{o:.6g}") for name, (a, e, o, _) in self.averages.items()]
        return table(repr(self).splitlines()[0], rows, ("", "average", "target"))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        plain = lambda tree: {name: np.asarray(part).tolist() for name, part in tree.items()}
        rest = {"chi_squared": self.chi_squared, "freedom": self.freedom, "good": self.good, "rounds": self.rounds}
        return {"subject": self.subject, "value": plain(self.value), "stderr": plain(self.stderr), "averages": plain(self.averages)} | rest


@checked(**(RUN | {"averages": _TARGETS}))
def fit_averages(
    scheme: Scheme,
    start: Any,
    *,
    averages: Mapping[str, Any],
    parameters: Any = None,
    step: float,
    steps: int,
    burn_in: int,
    trajectories: int = 1000,
    every: int | None = None,
    seed: int = 0,
) -> AveragesFit:
    """Parameters for which equilibrium averages have given values.

    scheme      Langevin or Brownian motion, whose stationary state is exp(−H/kT); its numbers are where the search begins
    averages    names and (function of a State, value) or (function of a State, value, standard error); at least as many as there are parameters
    parameters  names as for `sensitivity`
    step, steps, burn_in, trajectories, every   of each run towards it
    """
    check_process()
    chosen = parameters_of(scheme, parameters)
    if why := covariance.why_not(scheme, chosen):
        raise BismutError(f"fit_averages needs a stationary state exp(−H/kT), but there is {why}.")
    if chosen.count > len(averages):
        raise DomainError(f"{chosen.count} parameters cannot follow from {len(averages)} averages. Give more averages, or fit fewer parameters.")
    functions = tuple(target[0] for target in averages.values())
    wanted = np.array([float(target[1]) for target in averages.values()])
    error = np.array([float(target[2]) if len(target) == 3 else 0.0 for target in averages.values()])
    theta, run = chosen.vector(scheme).astype(float), {"step": step, "steps": steps, "burn_in": burn_in, "trajectories": trajectories}
    run |= {"every": every or max(1, steps // 1000), "first": 0, "t0": 0.0}
    together = lambda state, t: jnp.concatenate([jnp.stack([x, x**2]) for x in (value_of(function, scheme, state, t) for function in functions)])
    for rounds in range(1, _ROUNDS + 1):
        now = chosen.put(scheme, jnp.asarray(theta))
        each, value, failed, _ = covariance.covariances(now, start, together, chosen, Wiener(seed + rounds), **run)
        if failed:
            raise BismutError(f"{failed} of {trajectories} trajectories failed at {chosen.written(theta)}. Take a smaller step.")
        squares = value[:, 1::2].mean(0)
        each, value = each[:, :, ::2], value[:, ::2]
        fluctuation = np.sqrt(np.maximum(squares - value.mean(0) ** 2, 1e-300))
        sigma = value.std(0, ddof=1) / np.sqrt(len(value))
        J, W = each.mean(0).T, 1 / (error**2 + sigma**2)
        information = (J * W[:, None]).T @ J
        if np.linalg.cond(information) > 1e12:
            raise BismutError(f"The averages do not determine all of {', '.join(chosen.labels)}: their derivatives are dependent. Fit fewer of them.")
        spread = np.linalg.inv(information)
        rest = wanted - value.mean(0)
        move = spread @ (J.T @ (W * rest))
        errors = np.sqrt(np.diag(spread))
        if np.all(np.abs(move) < _NEAR * errors):
            theta = theta + move
            break
        theta = theta + move * min(1.0, _FAR / max(float(np.max(np.abs(J @ move) / fluctuation)), 1e-300))
    else:
        raise BismutError(f"The averages were not matched in {_ROUNDS} rounds. Begin nearer to the answer, or take more trajectories.")
    left = rest - J @ move
    freedom = len(wanted) - chosen.count
    squared = float(left @ (W * left)) if freedom else 0.0
    good = not freedom or scipy.stats.chi2.sf(squared, freedom) > _UNLIKELY
    reached = value.mean(0) + J @ move
    comparison = {name: (float(reached[i]), float(sigma[i]), float(wanted[i]), float(error[i])) for i, name in enumerate(averages)}
    subject = f"{scheme.title} on {scheme.space}, {len(averages)} averages over {trajectories} trajectories"
    fitted = chosen.put(scheme, jnp.asarray(theta))
    return AveragesFit(chosen.split(theta, scheme), chosen.split(errors, scheme), comparison, squared, freedom, bool(good), rounds, fitted, subject)
