"""Wrong input to a run, refused at once with what was wanted, what came and what to do."""

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import DegenerateError, DomainError, ShapeError
from bismut.mechanics import Maxwell, Scheme, State
from bismut.noise import Index, Wiener


def check_step(step) -> None:
    if isinstance(step, jax.core.Tracer):
        return  # differentiated or mapped over: its value is not known here
    value = np.asarray(step)
    if value.shape != () or not np.isfinite(value) or value <= 0:
        raise DomainError(f"step must be one positive number, but {step} came. A scheme is run backwards with its adjoint, not with a negative step.")


def count(value, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DomainError(f"{name} must be a whole number ≥ 1, but {value!r} came.")
    return int(value)


def check_start(scheme: Scheme, start, path: Wiener, index: Index) -> tuple[State, tuple[int, ...]]:
    """The start state (Maxwell starts are drawn for the given trajectories) and its batch axes."""
    if isinstance(start, Maxwell):
        batch = scheme.space.check(start.q, "start.q")
        draw = start.draw
        if np.shape(index[0]):
            draw = jax.vmap(lambda i, q: start.draw(path, i, q), in_axes=(0, 0 if batch else None))
            return draw(index, start.q), np.shape(index[0])
        return draw(path, index), batch
    if not isinstance(start, State):
        raise ShapeError(f"start must be a State from scheme.start(...), but {type(start).__name__} came.")
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(start)):
        return start, ()
    batch = scheme.space.check(start.q, "start.q")
    if batch != scheme.space.check_velocity(start.p, "start.p"):
        raise ShapeError("start.q and start.p have different leading axes. Make the start with scheme.start(...).")
    dtype = scheme.system.dtype
    for leaf in jax.tree.leaves(start):
        if jnp.asarray(leaf).dtype != dtype:
            raise ShapeError(f"start is {jnp.asarray(leaf).dtype}, but the system works in {dtype}. scheme.start(...) gives the right one.")
    if scheme.system._lagrangian is not None and scheme.system._cells is None:
        _check_regular(scheme, start, batch)
    return start, batch


def _check_regular(scheme: Scheme, start: State, batch: tuple[int, ...]) -> None:
    """Refuse a start at which the Legendre transform cannot be inverted."""
    one = jax.tree.map(lambda leaf: leaf[(0,) * len(batch)], start)
    velocity = scheme.system.velocity(one.q, one.p)
    if not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(velocity)):
        raise DegenerateError("∂L/∂v = p has no solution at the start: the Lagrangian is degenerate there, or the momentum lies outside its range.")
