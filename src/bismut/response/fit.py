"""Parameters from an observed path.

    θ̂ = argmax ln p(path; θ),        cov θ̂ = I⁻¹,   I = −∂² ln p/∂θ²

ln p is exact, of the scheme at the step of the path (`path_likelihood`). Three checks say whether the model can be believed: residuals must be
standard normal and independent of each other from step to step; and what is simulated from the fit must look like the path. A fourth says whether the
maximum was reached: with the gradient g of ln p the way to it is √(gᵀ I⁻¹ g) standard errors long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.ensembles import complete_run, potential_energy, request, values
from bismut.ensembles.checks import RUN
from bismut.errors import BismutError, DomainError
from bismut.findings.statistics import SURE
from bismut.flows import Langevin
from bismut.formatting import first_of, table, with_error
from bismut.mechanics import Scheme
from bismut.noise import Wiener
from bismut.process import check_process
from bismut.response.parameters import FRICTION, TEMPERATURE, Parameters, parameters_of
from bismut.response.path_likelihood import ObservedPath, check_scheme, information, normals_of, observed_path, state_at, value_and_slope

_FEW = 64  # parameters up to which there are standard errors
_ROUNDS = 100  # of Newton's method
_NEAR = 0.1  # standard errors from the maximum at which a search may end; of more than 64 parameters, of each
_CHUNK, _COPIES = 500, 40  # steps of a simulated path, and how many of them
_MOVING = "paths simulated from the fit, since the model depends on time and they would all begin at one"


@dataclass(frozen=True)
class ModelCheck:
    """A number that should be what the model says: by how many standard errors it is off, and by how many it may be."""

    name: str
    value: float
    expected: float
    off: float
    most: float = SURE


@dataclass(frozen=True)
class Fit:
    """Fitted parameters.

    value, stderr   by name; stderr from the information matrix, NaN for more than 64 parameters. "friction" is a factor on that of the scheme
    covariance      of all components, in the order of `labels`
    scheme          the scheme with the fitted numbers
    log_likelihood  at the fit, of so many `terms`
    checks          residuals and simulations from the fit, and of an optimiser how far the maximum is; `good` if each is as near as it must be
    left_out        checks that do not apply, with the reason
    """

    value: dict[str, Any]
    stderr: dict[str, Any]
    covariance: np.ndarray
    labels: tuple[str, ...]
    scheme: Scheme
    log_likelihood: float
    terms: int
    rounds: int
    checks: tuple[ModelCheck, ...]
    subject: str
    left_out: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return all(abs(check.off) < check.most for check in self.checks)

    def __repr__(self) -> str:
        verdict = "the checks hold" if self.good else "THE CHECKS DO NOT HOLD"
        lines = [f"{self.subject}: ln p = {self.log_likelihood:.8g} of {self.terms} steps; {verdict}"]
        flat = lambda tree: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, np.ndarray))])
        numbers = np.concatenate([flat(self.value[name]) for name in self.value])
        errors = np.concatenate([flat(self.stderr[name]) for name in self.value])
        factor = FRICTION if FRICTION not in (self.scheme.system.parameters or {}) else ""
        labels = [f"{label} ×" if label == factor else label for label in self.labels]  # a factor, which must not be read as a friction
        shown = [f"  {label:<16} {with_error(x, e)}" for label, x, e in zip(labels, numbers, errors, strict=True)]
        lines += first_of(shown, 12, "\n").splitlines()
        lines += [f"  {check.name}: {check.value:.4g}, expected {check.expected:.4g}: {check.off:+.2g} standard errors" for check in self.checks]
        return "\n".join([*lines, *(f"  not checked: {why}" for why in self.left_out)])

    def _repr_html_(self) -> str:
        return table(
            repr(self).splitlines()[0], [(check.name, f"{check.value:.4g}", f"{check.expected:.4g}", f"{check.off:+.2g}") for check in self.checks]
        )

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        plain = lambda tree: jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), tree)
        checks = [{"name": c.name, "value": c.value, "expected": c.expected, "off": c.off} for c in self.checks]
        rest = {"log_likelihood": self.log_likelihood, "terms": self.terms, "good": self.good, "checks": checks}
        return {"subject": self.subject, "value": plain(self.value), "stderr": plain(self.stderr)} | rest


@checked(**RUN)
def fit(
    scheme: Scheme,
    observed: Any,
    *,
    step: float,
    parameters: Any = None,
    t0: float = 0.0,
    optimiser: Any = None,
    iterations: int = 1000,
    check: bool = True,
    seed: int = 0,
) -> Fit:
    """Parameters of a Langevin scheme from a path, by maximum likelihood from the numbers that the scheme has.

    scheme      Langevin(..., splitting=bm.OBABO); its numbers are where the search begins
    observed    a path with one point for every step: a Trajectory, a State with time along its first axis, or points alone
    step        between two points of the path, which is that of the scheme
    parameters  names as for `sensitivity`: keys of the system's parameters, "temperature", "friction", a factor on that of the scheme
    optimiser   by default Newton's method. For many parameters one of optax, such as optax.adam(1e-2), for so many `iterations`; whether they were
                enough is one of the checks
    check       whether paths are simulated from the fit and compared with the one observed
    """
    check_process()
    check_scheme(scheme)
    assert isinstance(scheme, Langevin)
    path = observed_path(scheme, observed, step, t0)
    chosen = parameters_of(scheme, parameters)
    theta = np.asarray(chosen.vector(scheme), float)
    theta, rounds = _newton(scheme, chosen, theta, path) if optimiser is None else _descent(scheme, chosen, theta, path, optimiser, iterations)
    value, slope = (np.asarray(x, float) for x in value_and_slope(scheme, chosen, jnp.asarray(theta), path))
    covariance = np.full((chosen.count, chosen.count), math.nan)
    if chosen.count <= _FEW:
        curvature = information(scheme, chosen, theta, path, _first_moves(theta))[0]
        reached = _reached(slope * path.terms, curvature)
        covariance = _covariance(curvature, chosen) if abs(reached.off) < reached.most or np.linalg.eigvalsh(curvature).min() > 0 else covariance
    else:
        reached = _reached_along(scheme, chosen, theta, path, slope)
    fitted = chosen.put(scheme, jnp.asarray(theta))
    assert isinstance(fitted, Langevin)
    checks = _residual_checks(np.asarray(normals_of(scheme, chosen, jnp.asarray(theta), path)), TEMPERATURE in chosen.names)
    checks += [reached] if optimiser is not None or abs(reached.off) >= reached.most else []
    moving = fitted.time_dependent
    checks += _simulated_checks(fitted, path, seed) if check and not moving else []
    kind = "points and momenta" if path.p is not None else "points alone"
    subject = f"{scheme.title} on {scheme.space}, {path.points} {kind} every {step:g}"
    errors = np.sqrt(np.diag(covariance))
    return Fit(
        chosen.split(theta, scheme),
        chosen.split(errors, scheme),
        covariance,
        tuple(chosen.labels),
        fitted,
        -float(value) * path.terms,
        path.terms,
        rounds,
        tuple(checks),
        subject,
        (_MOVING,) if check and moving else (),
    )


def _newton(scheme: Langevin, chosen: Parameters, theta: np.ndarray, path: ObservedPath) -> tuple[np.ndarray, int]:
    """Newton's method with a line search; where −ln p is not convex, along the absolute values of its curvatures."""
    if chosen.count > _FEW:
        raise DomainError(f"{chosen.count} parameters are too many for Newton's method, which takes {_FEW}. Give optimiser=optax.adam(1e-2).")
    slope_of = lambda theta: tuple(np.asarray(x, float) for x in value_and_slope(scheme, chosen, jnp.asarray(theta), path))
    value, slope = slope_of(theta)
    if not np.isfinite(value):
        raise BismutError("The likelihood of the path is not finite at the scheme's own numbers. Begin nearer to the answer.")
    moves = _first_moves(theta)
    for rounds in range(1, _ROUNDS + 1):
        H, moves = information(scheme, chosen, theta, path, moves)
        if not np.isfinite(H).all():
            raise BismutError(f"The likelihood of the path has no finite curvature at {chosen.written(theta)}. Begin elsewhere.")
        curvatures, axes = np.linalg.eigh(H / path.terms)
        curvatures = np.maximum(np.abs(curvatures), 1e-12 * np.abs(curvatures).max(initial=1e-300))
        move = -axes @ ((axes.T @ slope) / curvatures)
        gain = -float(slope @ move)  # twice what a parabola would gain
        if gain * path.terms < 1e-8:  # of ln p: a ten-thousandth of a standard error
            return theta, rounds
        size = 1.0
        while size > 1e-10:
            new, there = slope_of(theta + size * move)
            if np.isfinite(new) and np.isfinite(there).all() and new <= value - 1e-4 * size * gain:
                break
            size *= 0.5
        else:
            return theta, rounds  # round-off: nothing is lower nearby
        theta, value, slope = theta + size * move, new, there
    raise BismutError(f"The fit did not converge in {_ROUNDS} rounds. Begin nearer to the answer, or fit fewer parameters.")


def _first_moves(theta: np.ndarray) -> np.ndarray:
    return 1e-4 * np.maximum(np.abs(theta), 1e-2)


def _descent(scheme: Langevin, chosen: Parameters, theta: np.ndarray, path: ObservedPath, optimiser: Any, iterations: int) -> tuple[np.ndarray, int]:
    if not (hasattr(optimiser, "init") and hasattr(optimiser, "update")):
        raise DomainError(f"optimiser must be one of optax, such as optax.adam(1e-2), got {optimiser!r}.")
    now = jnp.asarray(theta)
    state = optimiser.init(now)
    for _ in range(int(iterations)):
        slope = value_and_slope(scheme, chosen, now, path)[1]
        updates, state = optimiser.update(slope, state, now)
        now = now + updates
    if not np.isfinite(np.asarray(now)).all():
        raise BismutError("The optimiser left the numbers for which the path has a density. Take a smaller learning rate.")
    return np.asarray(now, float), int(iterations)


def _reached(slope: np.ndarray, curvature: np.ndarray) -> ModelCheck:
    """How far the maximum is: √(gᵀ I⁻¹ g), infinite where ln p is no hill."""
    curvatures, axes = np.linalg.eigh(curvature)
    along = (axes.T @ slope) ** 2
    far = math.sqrt(np.sum(along[curvatures > 0] / curvatures[curvatures > 0])) if np.all(curvatures > -1e-9 * curvatures.max()) else math.inf
    return ModelCheck("gradient of ln p", far, 0.0, far, _NEAR)


def _reached_along(scheme: Langevin, chosen: Parameters, theta: np.ndarray, path: ObservedPath, slope: np.ndarray) -> ModelCheck:
    """The same along the gradient alone, gᵀg/√(gᵀ I g), of so many parameters that I is not computed: by Cauchy and Schwarz it is not too long."""
    size = float(np.linalg.norm(slope))
    move = 1e-4 * max(float(np.linalg.norm(theta)), 1e-2) * slope / max(size, 1e-300)
    after, before = (np.asarray(value_and_slope(scheme, chosen, jnp.asarray(x), path)[1], float) for x in (theta + move, theta - move))
    bend = float((after - before) @ move) / (2 * float(move @ move)) if size else 1.0
    far = size * math.sqrt(path.terms / bend) if bend > 0 else math.inf
    return ModelCheck("gradient of ln p", far, 0.0, far, _NEAR * math.sqrt(chosen.count))


def _covariance(information: np.ndarray, chosen: Parameters) -> np.ndarray:
    curvatures, axes = np.linalg.eigh(information)
    if curvatures.min() <= 1e-12 * curvatures.max():
        weak = chosen.labels[int(np.abs(axes[:, 0]).argmax())]
        raise BismutError(f"The path does not determine all parameters: ln p is flat along a direction that is mostly {weak}. Fit fewer of them.")
    return (axes / curvatures) @ axes.T


def _residual_checks(z: np.ndarray, fitted_size: bool) -> list[ModelCheck]:
    """Mean, fourth moment and correlation with the step before, of normals; their variance too, unless a fitted temperature sets it."""
    total = z.size
    mean, second, fourth = (float((z**power).mean()) for power in (1, 2, 4))
    lag = float((z[1:] * z[:-1]).sum() / (z**2).sum())
    size = [] if fitted_size else [ModelCheck("variance of residuals", second, 1.0, (second - 1) * math.sqrt(total / 2))]
    return [
        ModelCheck("mean of residuals", mean, 0.0, mean * math.sqrt(total)),
        *size,
        ModelCheck("kurtosis of residuals", fourth / second**2, 3.0, (fourth / second**2 - 3.0) * math.sqrt(total / 24)),
        ModelCheck("correlation of successive residuals", lag, 0.0, lag * math.sqrt(total)),
    ]


def _simulated_checks(fitted: Langevin, path: ObservedPath, seed: int) -> list[ModelCheck]:
    """Means over stretches of the path beside those of paths simulated from the fit, from observed points."""
    length = min(_CHUNK, (path.points - 1) // 4)
    begins = np.arange(0, path.points - length, length)
    rows = np.resize(begins, _COPIES)
    states = state_at(path, rows)
    kT = float(fitted.kT(path.t0))
    start = fitted.start(states.q, momentum=states.p) if states.p is not None else fitted.start(states.q, temperature=kT)
    run = complete_run(
        request(
            fitted,
            start,
            step=path.step,
            steps=length,
            trajectories=_COPIES,
            path=Wiener(seed),
            t0=path.t0,
            observe={"U": values(potential_energy, every=1)},
            keep_final=False,
        )
    )
    simulated = np.asarray(run.observables["U"].value)[:, 1:]
    potential = jax.jit(jax.vmap(lambda q: fitted.system.potential(q, path.t0)))
    seen = np.asarray(potential(jax.tree.map(jnp.asarray, path.q)))
    stretches = np.stack([seen[b + 1 : b + 1 + length] for b in begins])
    checks = []
    for name, of in (("potential energy", lambda u: u), ("its squared change in a step", lambda u: np.diff(u, axis=1) ** 2)):
        own, other = of(stretches).mean(1), of(simulated).mean(1)
        error = math.hypot(own.std(ddof=1) / math.sqrt(len(own)), other.std(ddof=1) / math.sqrt(len(other))) if len(own) > 1 else math.inf
        checks.append(
            ModelCheck(
                f"{name}, beside {_COPIES} simulated paths",
                float(own.mean()),
                float(other.mean()),
                float(own.mean() - other.mean()) / max(error, 1e-300),
            )
        )
    return checks
