"""Wrong input to a run, refused at once with what was expected, what was given and what to do."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.compile_cache import Memory, key, split
from bismut.ensembles.result import RESERVED
from bismut.errors import DegenerateError, DomainError, ProcessError, ShapeError
from bismut.host import evaluate
from bismut.mechanics import Maxwell, Scheme, State, constraint
from bismut.noise import Path, Wiener
from bismut.tracing import nothing_traced


def check_step(step) -> None:
    if isinstance(step, Tracer):
        return  # differentiated or mapped over: its value is not known here
    value = np.asarray(step)
    if value.shape != () or value.dtype.kind not in "iuf" or not np.isfinite(value) or value <= 0:
        raise DomainError(f"step must be one positive number, got {step!r}. A scheme is run backwards with its adjoint, not with a negative step.")


def check_scheme(scheme: Any) -> None:
    """Refuse what cannot be stepped: most often a system, or a scheme that was not given its system."""
    if not isinstance(scheme, Scheme):
        got = f"the class {scheme.__name__}" if isinstance(scheme, type) else type(scheme).__name__
        raise ShapeError(f"Expected a scheme such as bm.Verlet(system), got {got}.")


@cache
def _user() -> int:
    """The process that computed first, here or in the one from which this was forked."""
    return os.getpid()


def check_process() -> None:
    """Refuse to compute in a process forked from one that has computed: the compiler's threads do not come along, and waiting for them never ends."""
    if _user() != os.getpid():
        raise ProcessError(
            "This process was forked from one that had already computed, and would wait forever for threads that exist only there. "
            'Start new processes instead: multiprocessing.get_context("spawn"), or fork before the first run.'
        )


def count(value, name: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise DomainError(f"{name} must be a whole number ≥ {least}, got {value!r}.")
    return int(value)


def one_of(value, words: tuple[str, ...], name: str) -> str:
    if value not in words:
        raise DomainError(f"{name} must be {', '.join(repr(word) for word in words[:-1])} or {words[-1]!r}, got {value!r}.".replace("'", '"'))
    return value


def chosen_path(seed: int | None, path: Any, scheme: Scheme, *, step: Any, steps: int, trajectories: int) -> Path:
    """The path of a seed, or the path itself, not both; refused if it cannot drive so many steps of so many trajectories."""
    if path is not None and not isinstance(path, Path):
        raise DomainError(
            f"path must be a path such as Wiener(7, substeps=2), Recorded(increments) or a subclass of Path of your own, got {type(path).__name__}. "
            "A number is given as seed=, and data as Recorded(data)."
        )
    if path is not None and seed is not None:
        raise DomainError("Give a seed or a path, not both: the path has its own seed, Wiener(seed, ...).")
    if path is None and type(seed) is int and nothing_traced():
        known = _SEEDS.get((seed, scheme.bounded), lambda: Wiener(seed, bounded=scheme.bounded))
        if not any(leaf.is_deleted() for leaf in jax.tree.leaves(known)):
            return known
    if path is None:
        return Wiener(0 if seed is None else seed, bounded=scheme.bounded)
    if path.jumps and not scheme.marcus:
        raise DomainError(
            f"{path!r} jumps, but a jump under {scheme.title} would not be the flow of its noise for unit time, as kicks depend on the momentum. "
            "Use noise that depends on q alone."
        )
    path.check(channels=scheme.clipped, h=step, steps=steps, trajectories=trajectories)
    return path


_SEEDS = Memory(64)  # paths of seeds that come again: one takes 0.1 ms to make


def check_time(t0) -> None:
    """Refuse a time at the start that is not one finite number."""
    if isinstance(t0, Tracer):
        return
    if isinstance(t0, bool) or not isinstance(t0, int | float | np.number | np.ndarray | jax.Array) or np.shape(t0) != () or not np.isfinite(t0):
        raise DomainError(f"t0 must be one finite number, the time at the start, got {t0!r}.")


def check_tables(observe: Any, until: Any, sweep: Any) -> None:
    """Refuse what is not a table of names, and names that results could not keep."""
    for name, table, example in (
        ("observe", observe, '"energy": bm.energy'),
        ("until", until, '"energy": 0.01'),
        ("sweep", sweep, '"k": [1.0, 2.0]'),
    ):
        if table is not None and not isinstance(table, Mapping):
            raise DomainError(f"{name} must be a dictionary such as {{{example}}}, got {type(table).__name__}.")
    for name in observe or ():
        check_name(name)


def check_name(name: Any) -> None:
    """Refuse a name under which an observer cannot be filed."""
    if name in RESERVED:
        raise DomainError(f"An observer cannot be called {name!r}: this name is reserved in results ({', '.join(RESERVED)}). Choose another.")
    if not isinstance(name, str) or not name or name != name.strip() or "/" in name or set(name) == {"."}:
        raise DomainError(f"An observer cannot be called {name!r}: expected a word without '/', because results are filed under it.")


def check_looks(observe: Mapping[str, Any] | None, steps: Any) -> None:
    """Refuse an observer that would look once, at the start, and never again."""
    for name, what in (observe or {}).items():
        every = getattr(what, "every", None)
        if isinstance(every, int) and isinstance(steps, int | np.integer) and every > steps and not getattr(what, "records", False):
            raise DomainError(
                f"observe[{name!r}] looks every {every} steps, but the run has {steps}: it would see nothing. Give it a smaller every=."
            )


def check_start(scheme: Scheme, start: Any, t: Any = 0.0) -> tuple[int, ...]:
    """Refuse a start that is not a state of the scheme's system; return its batch axis, if it has one."""
    if not isinstance(start, State | Maxwell):
        raise ShapeError(f"start must be a State from scheme.start(...), got {type(start).__name__}.")
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(start)):
        return _one_axis(leading(scheme, start))  # differentiated or mapped over: its numbers are not known here
    if isinstance(start, Maxwell):
        return _one_axis(scheme.space.check(start.q, "start.q"))
    at, batch = scheme.space.check(start.q, "start.q"), scheme.space.check_velocity(start.p, "start.p")
    if jax.tree.leaves(start.q) and at != batch:
        raise ShapeError("start.q and start.p have different leading axes. Make the start with scheme.start(...).")
    dtype = scheme.system.dtype
    for leaf in jax.tree.leaves(start):
        kind = leaf.dtype if isinstance(leaf, np.ndarray | jax.Array) else jnp.asarray(leaf).dtype
        if kind != dtype:
            raise ShapeError(f"start is {kind}, but the system works in {dtype}. scheme.start(...) gives the right one.")
    if not scheme.system.separable and scheme.system.has_lagrangian:
        _check_regular(scheme, start, batch)
    if scheme.system.constraints:
        constraint.check_start(scheme.system, start, batch, t)
    return _one_axis(batch)


def leading(scheme: Scheme, start: State | Maxwell) -> tuple[int, ...]:
    """The axes that points have before those of the space; momenta, where there are no points."""
    own = jax.eval_shape(lambda: (scheme.space.origin(scheme.system.dtype), scheme.space.zero(scheme.system.dtype)))
    given = (start.q, start.p) if isinstance(start, State) else start.q
    leaf, like = jax.tree.leaves(given)[0], jax.tree.leaves(own)[0]
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
        return jax.eval_shape(lambda: State(system.space.origin(system.dtype), system.space.zero(system.dtype), start.books))
    return jax.tree.map(shape, start)


_REGULAR = Memory(64)


def _check_regular(scheme: Scheme, start: State, batch: tuple[int, ...]) -> None:
    """Refuse a start at which the Legendre transform cannot be inverted. It is solved without compiling, 0.1 s, so what came out is remembered."""
    one = jax.tree.map(lambda leaf: leaf[(0,) * len(batch)], start)
    numbers = tuple(np.asarray(number).tobytes() for number in split((scheme.system, one))[0])

    def solvable() -> bool:
        return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(evaluate(scheme.system.velocity, one.q, one.p)))

    if not _REGULAR.get((key((scheme.system, one)), numbers), solvable):
        raise DegenerateError("∂L/∂v = p has no solution at the start: the Lagrangian is degenerate there, or the momentum lies outside its range.")
