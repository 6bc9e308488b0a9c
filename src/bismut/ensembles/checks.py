"""Wrong input to a run, refused at once with what was expected, what was given and what to do."""

import inspect
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import Rule, table_of
from bismut.compile_cache import LRUCache, partition, program_key
from bismut.ensembles.observers.watcher import Watcher
from bismut.ensembles.result import RESERVED, Result
from bismut.errors import DegenerateError, DomainError, ShapeError
from bismut.executors import Executor
from bismut.mechanics import Maxwell, Scheme, State, constraint
from bismut.mechanics.state import BoxLedger
from bismut.noise import Path, Wiener
from bismut.programs.evaluation import evaluate
from bismut.tracing import nothing_traced, traced

RUN = {
    "scheme": Rule("a scheme such as bm.Verlet(system)", lambda scheme: isinstance(scheme, Scheme)),
    "path": Rule(
        "a path such as Wiener(7, substeps=2), Recorded(increments) or one of your own class of Path",
        lambda path: isinstance(path, Path),
        "A number is given as seed=, and data as Recorded(data).",
    ),
    "observe": table_of(
        "names and functions of a State or observers", '"energy": bm.energy', lambda what: callable(what) or isinstance(what, Watcher)
    ),
    "executor": Rule("Threads(n), Processes(n) or Dask(cluster)", lambda executor: isinstance(executor, Executor) and not isinstance(executor, type)),
    "continue_from": Rule(
        "a result of bm.simulate", lambda result: isinstance(result, Result), "A run in a folder goes on with store= and extend=True."
    ),
}  # what arguments of a run must be, beside the table of all functions


def chosen_path(seed: Any, path: Any, scheme: Scheme, *, step: Any, steps: int, trajectories: int) -> Path:
    """The path of a seed, or the path itself, not both; refused if it cannot drive so many steps of so many trajectories."""
    if path is not None:
        RUN["path"].check(path, "path")
    if path is not None and seed is not None:
        raise DomainError("Give a seed or a path, not both: the path has its own seed, Wiener(seed, ...).")
    if path is None and type(seed) is int and nothing_traced():
        known = _SEEDS.get(seed, lambda: Wiener(seed))
        if not any(leaf.is_deleted() for leaf in jax.tree.leaves(known)):
            return known
    if path is None:
        return Wiener(0 if seed is None else seed)
    if path.jumps and not scheme.supports_jumps:
        raise DomainError(
            f"{path!r} jumps, but a jump under {scheme.title} would not be the flow of its noise for unit time, as kicks depend on the momentum. "
            "Use noise that depends on q alone."
        )
    path.check(channels=scheme.path_channels, h=step, steps=steps, trajectories=trajectories)
    return path


_SEEDS = LRUCache(64)  # paths of seeds that come again: one takes 0.1 ms to make


def check_time(t0: Any, step: Any, dtype: Any) -> None:
    """Refuse a time at the start so large that a step is lost in its last digit, in the precision of the system."""
    if traced(t0, step):
        return
    largest = float(np.finfo(dtype).max)
    spacing = float(np.spacing(np.asarray(abs(float(t0)), dtype))) if abs(float(t0)) < largest else np.inf
    if spacing > float(step):
        raise DomainError(
            f"t0 = {float(t0):g} is too large for steps of {float(step):g}: in {np.dtype(dtype)} times there are {spacing:g} apart. Count time from "
            "another origin."
        )


def check_observers(observe: Mapping[str, Any] | None) -> None:
    """Refuse names that results could not keep, and functions that make observers in place of observers."""
    for name, what in (observe or {}).items():
        check_name(name)
        if inspect.isfunction(what) and str(what.__module__).startswith("bismut.ensembles."):
            raise DomainError(f"observe[{name!r}] is the function bm.{what.__name__} itself. Call it: {{{name!r}: bm.{what.__name__}(...)}}.")


def check_name(name: Any) -> None:
    """Refuse a name under which an observer cannot be filed."""
    if name in RESERVED:
        raise DomainError(f"An observer cannot be called {name!r}: this name is reserved in results ({', '.join(RESERVED)}). Choose another.")
    if not isinstance(name, str) or not name or name != name.strip() or "/" in name or set(name) == {"."} or not name.isprintable():
        raise DomainError(f"An observer cannot be called {name!r}: expected printable text without '/', because results are filed under it.")


def check_looks(observe: Mapping[str, Any] | None, steps: Any) -> None:
    """Refuse an observer that would look once, at the start, and never again."""
    for name, what in (observe or {}).items():
        every = getattr(what, "every", None)
        if isinstance(every, int) and isinstance(steps, int | np.integer) and every > steps and not getattr(what, "records", False):
            raise DomainError(
                f"observe[{name!r}] looks every {every} steps, but the run has {steps}: it would see nothing. Give it a smaller every=."
            )


def check_start(scheme: Scheme, start: Any, t: Any) -> tuple[int, ...]:
    """Refuse a start that is not a state of the scheme's system; return its batch axis, if it has one."""
    if not isinstance(start, State | Maxwell):
        raise ShapeError(f"start must be a State from scheme.start(...), got {type(start).__name__}.")
    if start.ledger if isinstance(start, Maxwell) else start.ledger is not None:
        scheme.check_ledger()
    _check_box(scheme, start)
    if traced(start, t):
        return _one_axis(leading(scheme, start))  # differentiated or mapped over: its numbers are not known here
    if isinstance(start, Maxwell):
        return _one_axis(scheme.space.check(start.q, "start.q"))
    at, batch = scheme.space.check(start.q, "start.q"), scheme.space.check_velocity(start.p, "start.p")
    if jax.tree.leaves(start.q) and at != batch:
        raise ShapeError("start.q and start.p have different leading axes. Make the start with scheme.start(...).")
    dtype = scheme.system.dtype
    for leaf in jax.tree.leaves((start.q, start.p, start.ledger)):
        kind = leaf.dtype if isinstance(leaf, np.ndarray | jax.Array) else jnp.asarray(leaf).dtype
        if kind != dtype:
            raise ShapeError(f"start is {kind}, but the system works in {dtype}. scheme.start(...) gives the right one.")
    if not scheme.system.separable and scheme.system.has_lagrangian:
        _check_regular(scheme, State(start.q, start.p), batch, t)
    if scheme.system.constraints:
        constraint.check_start(scheme.system, State(start.q, start.p), batch, t)
    return _one_axis(batch)


def _check_box(scheme: Scheme, start: State | Maxwell) -> None:
    """Refuse a start whose box changes for a scheme whose box stays, and the other way round."""
    boxed = isinstance(start.blank if isinstance(start, Maxwell) else start.ledger, BoxLedger)
    if boxed and not scheme.changes_box:
        raise DomainError(
            f"The start is a state at constant pressure, but the box of {scheme.title} stays as declared. Declare the system with box=state.box, and "
            "make a start of q and p."
        )
    if scheme.changes_box and not boxed:
        raise DomainError(f"The start holds no box, but {scheme.title} changes it. Make the start with the scheme's own start(...).")


def check_final(scheme: Scheme, final: State) -> None:
    """Refuse the last states of a run on another space. Their numbers are what they are: some trajectories may have failed."""
    like = jax.eval_shape(lambda: (scheme.space.origin(scheme.system.dtype), scheme.space.zero(scheme.system.dtype)))
    last = final.q, final.p
    leaves = list(zip(jax.tree.leaves(last), jax.tree.leaves(like), strict=False))
    fits = jax.tree.structure(last) == jax.tree.structure(like)
    if not fits or any(np.shape(leaf)[np.ndim(leaf) - len(own.shape) :] != own.shape for leaf, own in leaves):
        scheme.space.check(final.q, "continue_from.final.q")
        scheme.space.check_velocity(final.p, "continue_from.final.p")
        raise ShapeError(f"continue_from holds states of another space than {scheme.space}. Give the scheme of that run.")
    for leaf, own in leaves:
        if leaf.dtype != own.dtype:
            raise ShapeError(f"continue_from is {leaf.dtype}, but the system works in {own.dtype}. Give the scheme of that run.")


def leading(scheme: Scheme, start: State | Maxwell) -> tuple[int, ...]:
    """The axes that points have before those of the space; momenta, where there are no points."""
    own = jax.eval_shape(lambda: (scheme.space.origin(scheme.system.dtype), scheme.space.zero(scheme.system.dtype)))
    arrays = (start.q, start.p) if isinstance(start, State) else start.q
    leaf, like = jax.tree.leaves(arrays)[0], jax.tree.leaves(own)[0]
    return tuple(np.shape(leaf)[: np.ndim(leaf) - len(like.shape)])


def _one_axis(batch: tuple[int, ...]) -> tuple[int, ...]:
    if len(batch) > 1:
        raise ShapeError(f"A batch of starts has one leading axis, the trajectories, got {batch}.")
    return batch


def example_of(start: State | Maxwell, batch: tuple[int, ...]) -> State:
    """The shapes of one state."""
    shape = lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf)[len(batch) :], leaf.dtype)
    if isinstance(start, Maxwell):
        system = start.system
        return jax.eval_shape(lambda: State(system.space.origin(system.dtype), system.space.zero(system.dtype), start.blank_ledger))
    return jax.tree.map(shape, State(start.q, start.p, start.ledger))


_REGULAR = LRUCache(64)


def _check_regular(scheme: Scheme, start: State, batch: tuple[int, ...], t: Any) -> None:
    """Refuse a start at which the Legendre transform cannot be inverted. It is solved without compiling, 0.1 s, so what came out is remembered."""
    one = jax.tree.map(lambda leaf: leaf[(0,) * len(batch)], start)
    numbers = tuple(np.asarray(number).tobytes() for number in (*partition((scheme.system, one))[0], t))

    def solvable() -> bool:
        v = evaluate(lambda q, p: scheme.system.velocity(q, p, t), one.q, one.p)
        return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(v))

    if not _REGULAR.get((program_key((scheme.system, one)), numbers), solvable):
        raise DegenerateError("∂L/∂v = p has no solution at the start: the Lagrangian is degenerate there, or the momentum lies outside its range.")
