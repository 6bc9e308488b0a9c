"""`import_state`: a frame that another program wrote, as a start state.

    (x, q, v, L)  ↦  (q, v)  ↦  (q, p = ∂L/∂v)

Velocities are carried over; masses and moments are those of the system that is started.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from bismut.errors import BismutError, ShapeError
from bismut.mechanics import Inventory, Maxwell, Scheme, State, inventory
from bismut.sharing.formats import format_of, formats
from bismut.sharing.frames import Frames, point_of


def read_frame(file: str | Path, frame: int = -1) -> Frames:
    """One frame of a file; a negative number is counted from the end."""
    file = Path(file)
    if not file.is_file():
        raise BismutError(f"There is no file {file}.")
    form = format_of(file)
    if form.read is None:
        readable = ", ".join(name for name, one in formats().items() if one.read is not None)
        raise BismutError(f"States are read from {readable}, but {file} is {form.name}.")
    try:
        frames = form.read(file, frame)
    except BismutError:
        raise
    except Exception as problem:  # whatever a reader raises for a damaged file
        lines = str(problem).strip().splitlines()
        raise BismutError(f"{file} cannot be read as {form.name}: {lines[0][:200] if lines else type(problem).__name__}.") from problem
    _check_frame(file, frames)
    return frames


def _check_frame(file: Path, frames: Frames) -> None:
    """One frame of K bodies, in numbers."""
    bodies = len(frames.species)
    shapes = {"x": (1, bodies, 3), "v": (1, bodies, 3), "q": (1, bodies, 4), "L": (1, bodies, 3), "mass": (bodies,), "moments": (bodies, 3)}
    for name, shape in shapes.items():
        array = getattr(frames, name)
        if array is not None and array.shape != shape:
            raise BismutError(f"{file}: expected {name} of shape {shape[-2:]}, got {array.shape[-2:]}.")
        if array is not None and not (array.dtype.kind in "fiu" and np.isfinite(array).all()):
            raise BismutError(f"{file}: {name} holds numbers that are not finite, or what is no number, so nothing can start there.")
    if frames.q is not None and not np.linalg.norm(frames.q, axis=-1).all():
        raise BismutError(f"{file}: an orientation is 0, which is no quaternion of a rotation.")


def import_state(
    scheme: Scheme, file: str | Path, *, frame: int = -1, temperature: Any = None, t: Any = None, project: bool | None = None
) -> State | Maxwell:
    """A start state for a scheme from a frame of a GSD or an extended XYZ file.

    frame        which one; -1 is the last
    temperature  draw Maxwell momenta at this kT instead of taking the file's velocities
    t            the time of the start, as for scheme.start
    project      move the state onto the constraints; by default if there are any, because files round numbers
    """
    q, velocity = point_from(scheme, read_frame(file, frame), at_rest=temperature is not None)
    project = bool(scheme.system.constraints) if project is None else project
    motion = {"velocity": velocity} if temperature is None else {"temperature": temperature}
    return scheme.start(q, t=t, project=project, **motion)


def point_from(scheme: Scheme, frames: Frames, at_rest: bool = False) -> tuple[Any, Any]:
    """Point and velocity of a frame, in the structure of a scheme's space."""
    space, bodies = scheme.space, inventory(scheme.system)
    if bodies is None:
        raise ShapeError(f"A frame holds bodies, but the points of {space} are not bodies. Give the start as numbers.")
    if len(frames.species) != bodies.bodies:
        raise ShapeError(f"The frame holds {len(frames.species)} bodies, but {space} has {bodies.bodies}.")
    x, q = frames.x[0], None if frames.q is None else frames.q[0]
    v, w = (np.zeros_like(x), np.zeros_like(x)) if at_rest else (_velocity(frames, bodies), _angular(frames, bodies))
    points, velocities = point_of(bodies, x, q, v, w)
    like = lambda make, leaves: jax.tree.structure(jax.eval_shape(make)).unflatten(leaves)
    return like(space.origin, points), like(space.zero, velocities)


def _velocity(frames: Frames, bodies: Inventory) -> np.ndarray:
    if bodies.kind == "turning":
        return np.zeros_like(frames.x[0])
    if frames.v is None:
        raise BismutError("The frame has no velocities. Give temperature=kT for random momenta (--start temperature=0.5).")
    return frames.v[0]


def _angular(frames: Frames, bodies: Inventory) -> np.ndarray:
    """w = L/I along principal axes, with the moments of the file if it has them."""
    if not bodies.turns:
        return np.zeros((bodies.bodies, 3))
    moments = bodies.moments if frames.moments is None else frames.moments
    if frames.L is None or moments is None:
        raise BismutError("The frame has no angular momenta or no moments of inertia. Give temperature=kT for random momenta.")
    return np.divide(frames.L[0], moments, out=np.zeros_like(moments), where=moments > 0)
