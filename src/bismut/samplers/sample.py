"""`sample`: a log-density in, draws out.

starts spread over the domain  →  rounds of burn-in that choose step, scale and length  →  a frozen chain, exact at any step  →  draws
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import Rule, checked, is_integer, shown
from bismut.ensembles.progress import Progress
from bismut.errors import BismutError, DomainError, nearest
from bismut.process import check_process
from bismut.samplers.adaptation import AdaptationPlan, adapt, longest_step
from bismut.samplers.domain import Domain, domain_of
from bismut.samplers.draws import Draws, user_arrays
from bismut.samplers.exchange import Exchange, Tempered, first_ladder
from bismut.samplers.frozen import Frozen
from bismut.samplers.starts import spread_starts
from bismut.samplers.surface import surface_of
from bismut.samplers.target import Target, unit_target
from bismut.user_errors import reason_of

KERNELS = {"malt": 0.8, "hmc": 0.8, "metropolised": 0.95}
"""By name, with the acceptance at which its step is chosen."""

_whole = lambda least: Rule(f"a whole number ≥ {least}", lambda value: is_integer(value) and value >= least, counts=True)
_fraction = Rule("a number between 0 and 1", lambda value: isinstance(value, int | float) and 0 < value < 1)
_positive = Rule("a number ≥ 0", lambda value: isinstance(value, int | float) and 0 <= value < np.inf)


@checked(
    chains=_whole(2),
    draws=_whole(4),
    burn_in=_whole(40),
    thin=_whole(1),
    leapfrogs=_whole(1),
    acceptance=_fraction,
    friction=_positive,
    scaling=Rule("True or False", lambda value: isinstance(value, bool | np.bool_)),
    space=Rule("a space, a domain or a dictionary of them", lambda value: True),
)
def sample(
    space: Any,
    log_density: Callable,
    *,
    chains: int = 1024,
    draws: int = 1000,
    burn_in: int = 400,
    thin: int = 1,
    seed: int = 0,
    kernel: str = "malt",
    constraint: Callable | None = None,
    measure: str = "surface",
    ladder: Any = None,
    start: Any = None,
    acceptance: float | None = None,
    leapfrogs: int | None = None,
    friction: float | None = None,
    scaling: bool = True,
    mode: str = "auto",
    executor: Any = None,
    progress: bool | None = None,
) -> Draws:
    """Draw from a density on a space, a group or a surface; returns Draws.

    space        where the parameter lives: bm.Euclidean(n), bm.SO3(), bm.Sphere(2), bm.Stiefel(4, 2), ..., or a dictionary of several by name
    log_density  log ρ(x) up to a constant, with respect to the volume of the space; of a dictionary, a function of a dictionary
    chains       how many, all advanced together; draws: kept of each
    burn_in      about how many trajectories are made before the first draw, 60 at the least, in which step, scale and length are chosen; then they
                 are frozen. A long search for a length takes up to a quarter more: a fifth is always left to forget it
    thin         trajectories between draws
    seed         of starts and noise; a run is a function of it
    kernel       "malt": whole Langevin trajectories with one acceptance each; "hmc": the same without friction; "metropolised": one step at a time
    constraint   g(x) = 0, an array of numbers: the surface that is sampled
    measure      of which ρ is the density there: "surface", its area, or "conditional", the law of x given g(x) = 0, area over √det(∇g ∇gᵀ);
                 both in the numbers that log_density is given, whatever chart they have
    ladder       levels for replica exchange, those of the draws first, such as np.geomspace(1, 0.05, 8): each chain is a ladder of replicas, of which
                 the ones at level l sample ρˡ, or exp log_density(x, l) if the function takes two arguments. Inner levels are moved in burn-in
    start        points to begin at, one or one for each chain, as log_density is given them, instead of spread ones
    acceptance   at which the step is chosen; 0.8, and 0.95 for "metropolised"
    leapfrogs    steps of a trajectory, instead of the adapted length; friction: instead of one over its length
    scaling      whether coordinates are scaled by the covariance of the chains
    mode, executor, progress  as for `simulate`
    """
    check_process()
    domain = domain_of(space)
    extra = None
    if constraint is not None:
        domain, extra = surface_of(domain, constraint, measure)
    elif measure != "surface":
        raise DomainError("measure= says what a density on a surface is one of: give constraint= as well.")
    if kernel == "nuts":
        raise DomainError(
            "There is no no-U-turn kernel: trees make the work of every chain different, and the length that the rule looks for is measured "
            "once, in the burn-in. Use kernel='malt', or NumPyro or BlackJAX where lengths must differ from place to place."
        )
    if not isinstance(kernel, str):
        raise DomainError(f"kernel must be one of {', '.join(map(repr, KERNELS))}, got {shown(kernel)}.")
    if kernel not in KERNELS:
        raise DomainError(f"There is no kernel {kernel!r}. {nearest(kernel, KERNELS)}")
    if ladder is not None and executor is not None:
        raise DomainError("Replicas exchange their levels after every trajectory, in this process: give ladder= or executor=, not both.")
    if kernel == "hmc" and friction:
        raise DomainError('kernel="hmc" has no friction within a trajectory. Use kernel="malt".')
    if ladder is None and callable(log_density) and _wants_level(log_density):
        raise DomainError(
            "log_density takes two arguments, a point and a level, and a level is one of a ladder: give ladder= as well. "
            "Of several parameters the point is one argument, a dictionary: lambda p: f(p['a'], p['b'])."
        )
    levels, density = (None, log_density) if ladder is None else _ladder(ladder, log_density)
    target = unit_target(density, domain, extra, level=None if levels is None else float(levels[0]))
    _try(target, log_density)
    plan = AdaptationPlan(
        budget=burn_in,
        acceptance=KERNELS[kernel] if acceptance is None else acceptance,
        leapfrogs=1 if kernel == "metropolised" and leapfrogs is None else leapfrogs,
        friction=0.0 if kernel == "hmc" else friction,
        renewing=kernel != "metropolised",
        scaling=scaling,
    )
    settings = {"mode": mode, "executor": executor, "progress": False}
    clock = time.perf_counter()
    lanes = chains * (1 if levels is None else len(levels))
    with Progress(progress, chains, burn_in + draws * thin, None) as bar:
        note = lambda trajectories: bar.advance(trajectories, chains)
        q = spread_starts(target, lanes, (seed, 0), start)
        longest = longest_step(target)
        if levels is None:
            exchange = None
            target, tuning, states, log = adapt(target, q, plan, (seed, 1), settings, note=note)
        else:
            exchange = Exchange(first_ladder(levels, chains, isinstance(density, Tempered)), longest)
            target, tuning, states, log = adapt(target, q, plan, (seed, 1), settings, exchange, exchange.learn, note)
        settled = time.perf_counter()
        climbing = None if exchange is None else exchange.ladder.counted_anew()
        frozen, record = Frozen(target, tuning, states, (seed, 2), thin, settings, climbing, longest).draw(draws, note)
    seconds = {"burn-in": settled - clock, "draws": time.perf_counter() - settled}
    return Draws(user_arrays(target, record.q), record, frozen, kernel, log, seconds)


def _ladder(ladder: Any, log_density: Any) -> tuple[np.ndarray, Any]:
    """Levels, and the density of a point and a level."""
    try:
        levels = np.asarray(ladder, float)
    except (TypeError, ValueError):
        raise DomainError(f"ladder must be an array of levels such as np.geomspace(1, 0.05, 8), got {ladder!r}.") from None
    change = np.diff(levels) if levels.ndim == 1 else np.zeros(0)
    if levels.ndim != 1 or len(levels) < 2 or not np.isfinite(levels).all() or not ((change > 0).all() or (change < 0).all()):
        raise DomainError(f"ladder must be two or more levels that rise or fall, such as np.geomspace(1, 0.05, 8), got {ladder!r}.")
    if callable(log_density) and _wants_level(log_density):
        return levels, log_density
    if levels[0] != 1 or levels.min() < 0 or levels.max() > 1:
        raise DomainError(
            f"Levels of log_density(x) are inverse temperatures, 1 first and then lower ones, got {ladder!r}. Others: log_density(x, level)."
        )
    return levels, Tempered(log_density)


def _wants_level(function: Callable) -> bool:
    """Whether a function needs two arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == 2


def _try(target: Target, log_density: Any) -> None:
    """Refuse a log-density that fails or is no number, on shapes."""
    domain: Domain = target.domain
    if not callable(log_density):
        raise BismutError(f"log_density must be a function of a point, got {type(log_density).__name__}.")
    try:
        level = (target.level,) if target.laddered else ()
        value = jax.eval_shape(lambda q: target.density(target.point(q), *level), jax.eval_shape(domain.space.origin))
    except BismutError:
        raise
    except Exception as problem:
        seen = jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(target.point, jax.eval_shape(domain.space.origin)))
        raise BismutError(
            f"log_density fails at a point of {domain.space}, which it is given as arrays of shape {seen}: {reason_of(problem)}."
        ) from problem
    if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
        got = f"shape {value.shape} of {value.dtype}" if hasattr(value, "shape") else type(value).__name__
        raise BismutError(f"log_density must return one real number, got {got}. jnp.sum(...) of independent terms is one.")
