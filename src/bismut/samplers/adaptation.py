"""What is chosen while chains burn in, from all of them together, and frozen before the first draw is kept.

    step      acceptance is 2Φ(−σ/2) with σ ~ h²:      h ← h √(σ*/σ), by less each time the direction changes, and less if steps are not solved
    scale     L Lᵀ = covariance of the chains, (1 − s) C + s diag C,  s = d/(d + N), of all numbers of a dictionary
    spread    1/σ² = mean of 1/variance on groups, in the Lie algebra
    length    n doubled or halved while that raises the worst (1 − ρ)/(1 + ρ)/n, ρ the correlation over one trajectory of a coordinate or its square
    friction  1/(n h): a momentum is forgotten once in a trajectory

With a thousand chains every round measures an acceptance to a hundredth, so nothing is averaged over time and no rate of learning is needed. After
the last change a fifth of the burn-in is left to forget it; the chain that makes the draws is exact whatever was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy

from bismut.mechanics import State
from bismut.programs.evaluation import evaluate
from bismut.samplers import chains
from bismut.samplers.domain import Domain, parts_of
from bismut.samplers.scheme import Tuning
from bismut.samplers.target import Target
from bismut.spaces import Space

_FACTOR = 3.0  # by which a step changes at most in a round
_LONGEST = 256  # leapfrogs of a trajectory
_WIDEST = 1.0  # variance of an angle from which a density on a group counts as one that covers it
_UNSOLVED = 0.01  # of all trajectories at most
_LEAST = 0.02  # change of log h that is always allowed
_TURN = 0.7  # step at most on groups and circles, in units of the spread: beyond it energies hardly rise, and chains stick where others would turn
_GAIN = 1.1  # by which a longer or shorter trajectory must be better


@dataclass(frozen=True)
class AdaptationPlan:
    """How the burn-in is spent, in trajectories, and what may change: a target for the acceptance; n and γ where they are not given."""

    budget: int
    acceptance: float
    leapfrogs: int | None
    friction: float | None
    renewing: bool  # momenta are drawn afresh between trajectories
    scaling: bool


@dataclass
class Log:
    """What happened in each round: what for, the tuning and the acceptance."""

    rounds: list[dict[str, Any]] = field(default_factory=list)
    spent: int = 0

    def add(self, purpose: str, tuning: Tuning, leg: chains.Leg) -> None:
        self.spent += leg.trajectories
        self.rounds.append({"for": purpose, "tuning": str(tuning), "acceptance": leg.acceptance, "diverged": leg.diverged, "unsolved": leg.unsolved})


def adapt(
    target: Target,
    q: Any,
    plan: AdaptationPlan,
    seed: tuple,
    settings: dict[str, Any],
    advance: Callable[..., chains.Leg] = chains.advance,
    learn: Callable[[float], None] = lambda wanted: None,
    note: Callable[[int], None] = lambda trajectories: None,
) -> tuple[Target, Tuning, State, Log]:
    """The target with its scale, the tuning, the states of the chains, and how they were found.

    advance   makes a leg; learn: what else is chosen after one, given the acceptance that is wanted; note: hears of trajectories made
    """
    log, count = Log(), len(jax.tree.leaves(q)[0])
    first = plan.leapfrogs or 4
    tuning = _tuned(plan, 0.1, first)
    states = chains.begin(target, tuning, q)
    share, control = max(plan.budget // 40, 2), _StepAdaptation(plan.acceptance, longest_step(target))

    def run(purpose: str, trajectories: int) -> chains.Leg:
        nonlocal states, tuning
        leg = advance(target, tuning, chains.blank(states), trajectories=trajectories, seed=(*seed, len(log.rounds)), settings=settings)
        states = leg.final
        log.add(purpose, tuning, leg)
        note(trajectories)
        if not purpose.startswith("nothing"):
            tuning = _tuned(plan, control(tuning.step, leg), tuning.leapfrogs)
            learn(plan.acceptance)
        return leg

    for k in range(8):  # step and scale, an eighth or so at a time
        leg = run("step" if k < 2 else "step and scale", share)
        if plan.scaling and k >= 2:
            target, states, change = _rescaled(target, tuning, leg, states)
            control.allow(change)
    leg = run("scale", max(8 * share, min(20 * target.domain.space.dim // count, plan.budget)))
    if plan.scaling:
        target, states, change = _rescaled(target, tuning, leg, states)
        control.allow(change)
    run("step", share)
    if plan.leapfrogs is None and plan.renewing:
        quality: dict[int, float] = {}

        def measured(n: int) -> float:
            nonlocal tuning
            if n not in quality:
                tuning = _tuned(plan, tuning.step, n)
                run("length: step", max(share // 2, 2))
                quality[n] = efficiency(run("length", 2 * share), n)
            return quality[n]

        tuning = _tuned(plan, tuning.step, _best_length(measured, int(np.clip(round(1.5 / tuning.step), 1, _LONGEST))))
    for _ in range(3):
        run("step", share)
    chains_left = max(plan.budget - log.spent, plan.budget // 5)
    run("nothing: to forget", chains_left)
    return target, tuning, chains.blank(states), log


def _tuned(plan: AdaptationPlan, step: float, leapfrogs: int) -> Tuning:
    length = step * leapfrogs
    if not plan.renewing:
        return Tuning(step, leapfrogs, 0.0, renewal=length * (1.0 if plan.friction is None else plan.friction))
    return Tuning(step, leapfrogs, 1 / length if plan.friction is None else plan.friction)


def step_change(wanted: float, accepted: float) -> float:
    """The change of log h that brings an acceptance to the one that is wanted."""
    sigma = lambda accepted: -2 * scipy.special.ndtri(np.clip(accepted, 1e-6, 1 - 1e-6) / 2)
    return float(0.5 * np.log(sigma(wanted) / sigma(accepted)))


class _StepAdaptation:
    """The step after a round."""

    def __init__(self, wanted: float, longest: float):
        self.wanted, self.longest, self.most, self.last = wanted, longest, np.log(_FACTOR), 0.0

    def allow(self, change: float) -> None:
        """Steps are in units of the scale, whose logarithm has changed by so much."""
        self.most = max(self.most, min(change, np.log(_FACTOR)))

    def __call__(self, step: float, leg: chains.Leg) -> float:
        change = step_change(self.wanted, leg.acceptance)
        if leg.unsolved > 0:  # a chain is stuck where its steps have no solution, so few of them may be like that
            change = min(change, 0.25 * np.log(_UNSOLVED / leg.unsolved))
        if change * self.last < 0:
            self.most = max(0.7 * min(self.most, abs(self.last)), _LEAST)
        self.last = float(np.clip(change, -self.most, self.most))
        return min(step * float(np.exp(self.last)), self.longest)


def longest_step(target: Target) -> float:
    """On groups and circles, in units of the spread; elsewhere any."""
    turning = [part for part, root in zip(parts_of(target.domain), target.roots, strict=True) if root is None and part.constraint is None]
    return _TURN if turning and target.domain.separate else np.inf


def _best_length(measured: Callable[[int], float], n: int) -> int:
    """Doubled, else halved, while that is better."""
    better = False
    while 2 * n <= _LONGEST and measured(2 * n) > _GAIN * measured(n):
        n, better = 2 * n, True
    while not better and n > 1 and measured(n // 2) > _GAIN * measured(n):
        n = n // 2
    return n


def efficiency(leg: chains.Leg, leapfrogs: int) -> float:
    """(1 − ρ)/(1 + ρ) per leapfrog of the slowest coordinate, or square of one; rows of the leg are successive trajectories."""
    slowest = 0.0
    for leaf in jax.tree.leaves(leg.rows.q):
        x = leaf.reshape(*leaf.shape[:2], -1)
        x = x - x.mean((0, 1))
        for values in (x, x**2 - (x**2).mean((0, 1))):
            power = (values**2).mean((0, 1))
            rho = (values[:, 1:] * values[:, :-1]).mean((0, 1)) / np.where(power > 0, power, 1)
            moving = power > 1e-12 * max(float(power.max()), 1e-300)
            slowest = max(slowest, float(rho[moving].max(initial=0.0)))
    slowest = min(slowest, 1.0)
    return (1 - slowest) / (1 + slowest) / leapfrogs


def _rescaled(target: Target, tuning: Tuning, leg: chains.Leg, states: State) -> tuple[Target, State, float]:
    """The target with L and σ of the draws of a leg, the chains where they were, in its coordinates, and the largest change of log L or log σ."""
    parts, tupled = parts_of(target.domain), hasattr(target.domain, "parts")
    q = jax.tree.map(np.asarray, states.q)
    rows = leg.rows.q if tupled else (leg.rows.q,)
    roots, spreads, place, change = list(target.roots), list(target.spreads), 0, 0.0
    merged = lambda drawn: jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), drawn)
    for i, (part, root, drawn) in enumerate(zip(parts, target.roots, rows, strict=True)):
        sizes = len(jax.tree.leaves(jax.eval_shape(part.space.zero)))
        if root is not None:
            deviation = np.maximum(merged(drawn).std(0), 1e-12).reshape(-1)  # in the coordinates of the L before
            change = max(change, float(np.abs(np.log(deviation)).max()))
            roots[i] = jnp.asarray(np.asarray(root) * deviation) if root.ndim == 1 else root
        if target.spreads[place] is not None:
            for k, variance in enumerate(_variances(part, merged(drawn)), place):
                spread = float(np.mean(1 / variance) ** -0.5)
                change = max(change, abs(float(np.log(spread / target.spreads[k]))))
                spreads[k] = jnp.asarray(spread)
        place += sizes
    for group in target.groups:
        drawn = [merged(rows[i]) for i in group]
        L, end = _root(np.asarray(target.matrix(group)), np.concatenate([one.reshape(len(one), -1) for one in drawn], 1)), 0
        for i in group:
            begin, end = end, target.roots[i].shape[1]
            roots[i] = jnp.asarray(L[begin:end, :end])
    unscaled = jax.vmap(target.unscaled)(jax.tree.map(jnp.asarray, q))
    new = eqx.tree_at(lambda t: (t.roots, t.spreads), target, (tuple(roots), tuple(spreads)), is_leaf=lambda x: x is None)
    return new, chains.begin(new, tuning, new.scaled(unscaled)), change


def _root(root: np.ndarray, x: np.ndarray) -> np.ndarray:
    """L for draws in the coordinates of the L before."""
    size = x.shape[1]
    C = np.atleast_2d(np.cov(x, rowvar=False))
    s = size / (size + len(x))
    C = (1 - s) * C + s * np.diag(np.diag(C))
    values, Q = np.linalg.eigh(C)
    C = (Q * np.maximum(values, 1e-10 * max(values.max(), 1e-300))) @ Q.T
    return np.linalg.cholesky(root @ C @ root.T)


def _variances(part: Domain, draws: Any) -> list[np.ndarray]:
    """The variance of each component of the velocity that leads from a middle point to the draws."""
    space: Space = part.space
    count = len(jax.tree.leaves(draws)[0])
    chosen = jax.tree.map(lambda leaf: jnp.asarray(leaf[:: max(count // 2048, 1)]), draws)
    middle = jax.tree.map(lambda leaf: leaf[0], chosen)
    apart = lambda middle: evaluate(jax.vmap(lambda q: space.flatten(space.subtract(q, middle))), chosen)
    for _ in range(4):
        step = np.median(np.nan_to_num(np.asarray(apart(middle))), 0)
        middle = space.move(middle, space.unflatten(jnp.asarray(np.clip(step, -1, 1))))
    deviation = 1.4826 * np.median(np.abs(np.nan_to_num(np.asarray(apart(middle)), nan=10.0)), 0)  # of a normal distribution
    variance = np.clip(deviation**2, 1e-12, _WIDEST)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(space.unflatten(jnp.asarray(variance)))]
