"""Wrong systems, refused before anything runs: what was expected, what was given, what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import BismutError, DegenerateError, DomainError, ShapeError
from bismut.mechanics.function import UserFunction
from bismut.mechanics.symmetry import Symmetry
from bismut.programs import may_lack_gradient
from bismut.programs.evaluation import evaluate
from bismut.spaces import Point, Space, Velocity
from bismut.tracing import traced
from bismut.user_errors import reason_of

if TYPE_CHECKING:
    from bismut.mechanics.system import System

_LARGEST_PROBE = 64  # degrees of freedom up to which the Hessian of L is tried at random points
PROBE_TIMES = 0.0, 0.7  # at which what may move in time is tried


def count_values(system: System, name: str, function: UserFunction | None, without: int, wanted: int | None) -> int:
    """How many values the noise or the constraint has."""
    if function is None:
        return without
    q = jax.eval_shape(lambda: system.space.origin(system.dtype))
    shape = _shape_of(system, function, q)
    if isinstance(shape, tuple) and len(shape) == 1 and (wanted is None or shape == (wanted,)):
        _check_gradient(system, function, q)
        return shape[0]
    got = f"shape {shape}" if isinstance(shape, tuple) else shape
    size = "(m,)" if wanted is None else f"({wanted},)"
    what, letter = ("Wiener process", "γ") if name == "noise" else ("constraint", "g")
    raise ShapeError(f"{name} must return one array {size}, one value {letter}_i(q) per {what}, got {got}. Write jnp.array([{letter}_1, ...]).")


def count_forces(system: System) -> int:
    """How many random forces there are: the first axis of the covectors, which all arrays share."""
    if system._random_force is None:
        return 0
    q, v = system.space.origin(system.dtype), system.space.zero(system.dtype)
    got, want = _returned(system, system._random_force, q, v), jax.eval_shape(lambda: v)
    shapes = lambda tree: jax.tree.map(lambda leaf: tuple(jnp.shape(leaf)), tree)
    leaves = jax.tree.leaves(got)
    m = leaves[0].shape[0] if leaves and getattr(leaves[0], "ndim", 0) else None
    if m is None or shapes(got) != jax.tree.map(lambda leaf: (m, *leaf.shape), want):
        wanted = jax.tree.map(lambda leaf: ("m", *leaf.shape), want)
        raise ShapeError(
            f"random_force must return covectors shaped like a velocity with an extra leading axis, one per Wiener process, {wanted}, "
            f"got {shapes(got)}. Write jnp.stack([F_1, F_2, ...])."
        )
    return m


def count_hamiltonians(system: System) -> int:
    """How many noise Hamiltonians there are."""
    if system._hamiltonian is not None and system._lagrangian is not None:
        raise BismutError("A system needs a Lagrangian or a Hamiltonian, not both: give one of them.")
    q, p = jax.eval_shape(lambda: (system.space.origin(system.dtype), system.space.zero(system.dtype)))
    if system._hamiltonian is not None:
        shape = _shape_of(system, system._hamiltonian, q, p)
        if shape != ():
            got = f"shape {shape}" if isinstance(shape, tuple) else shape
            raise ShapeError(f"hamiltonian must return one number, got {got}. Sum over components: p @ p, jnp.sum(...).")
    if system._noise_hamiltonian is None:
        return 0
    shape = _shape_of(system, system._noise_hamiltonian, q, p)
    if isinstance(shape, tuple) and len(shape) == 1:
        return shape[0]
    got = f"shape {shape}" if isinstance(shape, tuple) else shape
    raise ShapeError(f"noise_hamiltonian must return one array (m,), one value H_j(q, p) per Wiener process, got {got}. Write jnp.array([H_1, ...]).")


def _returned(system: System, function: UserFunction, *arguments):
    """What a function returns, in shapes."""
    try:
        return jax.eval_shape(lambda *a: system._call(function, *a, t=jnp.zeros((), system.dtype)), *arguments)
    except BismutError:
        raise
    except Exception as problem:
        if system.parameters is None and "parameters" in function.wants:
            raise ShapeError(f"{function.name} names `parameters`, but the system has none. Give it parameters={{'k': 1.0}}.") from problem
        shapes = ", ".join(str(jax.tree.map(jnp.shape, a)) for a in arguments)
        raise ShapeError(f"{function.name} fails when called with arrays of shapes {shapes} on {system.space}: {reason_of(problem)}.") from problem


def _shape_of(system: System, function: UserFunction, *arguments):
    return _shape(_returned(system, function, *arguments))


def _shape(out: Any) -> Any:
    return out.shape if hasattr(out, "shape") else f"a {type(out).__name__}"


def check_space(space: Any) -> None:
    """Refuse what is no configuration space; most often its parentheses were forgotten."""
    if not isinstance(space, Space):
        got = f"the class {space.__name__}" if isinstance(space, type) else type(space).__name__
        raise ShapeError(f"space must be a configuration space such as SO3() or Euclidean(2), got {got}.{_way_out(space)}")


def _way_out(space: Any) -> str:
    """Of a domain of `sample`, how its points are moved by a system; nothing of anything else."""
    if not isinstance(getattr(space, "space", None), Space) or not hasattr(space, "log_volume"):
        return ""
    if getattr(space, "constraint", None) is not None:
        return f" That is a domain of bm.sample, a surface: with domain = {space} give space=domain.space and constraint=domain.constraint."
    return f" That is a domain of bm.sample, a chart: with domain = {space} give space=domain.space, on which domain.point(q) is the point at q."


_VELOCITIES = {"v", "velocity", "velocities", "qdot", "dq", "w", "omega", "p", "momentum"}


def check_constraint(constraint: Any) -> None:
    """Refuse, by name, a constraint on velocities."""
    try:
        named = list(inspect.signature(constraint).parameters)[1:] if callable(constraint) else []  # the first is the point, whatever its name
    except ValueError:
        return
    if velocities := [name for name in named if name in _VELOCITIES]:
        raise BismutError(
            f"constraint names {velocities[0]!r}: constraints on velocities, such as rolling without slipping, are not available; a constraint is "
            "g(q) = 0. If it can be integrated, write it as g(q); if not, a strong friction on the slip, force=lambda q, v: ..., comes close to it."
        )


def check_contact(contact: Any) -> None:
    """Refuse contact by name."""
    if contact is not None:
        raise BismutError(
            "Hard contact, with impacts at a wall or between bodies, is not available: steps see forces, and a wall that exerts none is passed "
            "through. Give the potential a slope there, such as a soft repulsion (bm.soft_spheres between bodies)."
        )


def check(system: System) -> None:
    """Refuse functions that return something else than they should, and a degenerate Lagrangian."""
    q, v = jax.eval_shape(lambda: (system.space.origin(system.dtype), system.space.zero(system.dtype)))
    # What the user wrote comes first: a Lagrangian made from a potential fails with it.
    for function, arguments in ((system._potential, (q,)), (system._kinetic, (q, v)), (system._lagrangian, (q, v))):
        if function is None:
            continue
        value = _returned(system, function, *arguments)
        shape = _shape(value)
        if shape != ():
            got = f"shape {shape}" if isinstance(shape, tuple) else shape
            raise ShapeError(f"{function.name} must return one number, got {got}. Sum over components: v @ v, jnp.sum(...).")
        if (kind := np.dtype(value.dtype).kind) in "bc":
            got, remedy = ("a truth value", "jnp.where(condition, a, b)") if kind == "b" else ("a complex number", "jnp.real(...)")
            raise DomainError(f"{function.name} must return a real number, got {got}. Use {remedy}.")
    _check_forces(system, q, v)
    _check_gradients(system, q, v)
    if system.constraints >= system.space.dim:
        raise BismutError(f"{system.constraints} constraints leave nothing to move on {system.space}, which has {system.space.dim} dimensions.")
    for name, symmetry in system._symmetries:
        if not isinstance(symmetry, Symmetry):
            raise ShapeError(f"symmetries[{name!r}] must be a symmetry such as left_rotation((0, 0, 1)), got {type(symmetry).__name__}.")
        for generator in symmetry.generators:
            _check_generator(system, name, generator, q, v)
    if system._cells is not None and system._potential is None:
        raise BismutError("cells are for systems written as L = T − U. Use mechanical(...), which finds them, or give potential= as well.")
    if system._lagrangian is not None and system._cells is None and system.space.dim <= _LARGEST_PROBE:
        _check_regular(system)


def _check_forces(system: System, q: Point, v: Velocity) -> None:
    if system.in_phase_space and system.constraints:
        raise BismutError(
            "Constraints need a Lagrangian: noise that depends on the momentum moves positions off the surface g = 0, and which force brings them "
            "back is not determined by g alone. Give L and noise(q), or omit the constraint."
        )
    if system._force is not None:
        _shape_of(system, system._force, q, v)
        got, want = (jax.tree.map(jnp.shape, tree) for tree in (jax.eval_shape(system.at(PROBE_TIMES[0]).force, q, v), v))
        if got != want:
            raise ShapeError(f"force must return a covector shaped like a velocity {want}, got {got}.")


def _check_gradients(system: System, q: Point, v: Velocity) -> None:
    """Refuse, by name, a function whose gradient is needed and cannot be taken. It is tried only where a loop or a callback makes it doubtful."""
    whole = system._lagrangian if system._potential is None else None  # of L = T − U the parts are looked at
    of_both = system._kinetic, system._hamiltonian, system._noise_hamiltonian, whole
    for function, arguments in [(system._potential, (q,)), *((one, (q, v)) for one in of_both)]:
        if function is not None:
            _check_gradient(system, function, *arguments)


def _check_gradient(system: System, function: UserFunction, *arguments) -> None:
    """Refuse a function that has no gradient for many states side by side, as a run takes it."""
    values = lambda *a: system._call(function, *a, t=jnp.zeros((), system.dtype))

    def gradient(*a):
        value, pullback = jax.vjp(values, *a)
        return pullback(value)

    if not may_lack_gradient(values, *arguments):
        return
    several = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), arguments)
    try:
        jax.eval_shape(jax.vmap(gradient), *several)
    except BismutError:
        raise
    except Exception as problem:
        raise BismutError(
            f"{function!r} has no gradient for many states at once, from which forces follow: {reason_of(problem)}. Loop with jax.lax.scan or a "
            "fixed number of rounds; what calls Python needs a vmap_method, and its gradient with jax.custom_vjp."
        ) from problem


def _check_generator(system: System, name: str, generator: Callable, q: Point, v: Velocity):
    try:
        got = jax.eval_shape(lambda q: generator(system.space, q), q)
    except BismutError:
        raise
    except Exception as problem:
        raise ShapeError(f"symmetries[{name!r}] does not act on {system.space}: {problem}") from problem
    shapes = [jax.tree.map(jnp.shape, tree) for tree in (got, v)]
    if shapes[0] != shapes[1]:
        raise ShapeError(f"symmetries[{name!r}] must move a point of {system.space} with a velocity of shape {shapes[1]}, got {shapes[0]}.")


def _check_regular(system: System) -> None:
    """Refuse a Lagrangian whose Hessian in v is singular at two random points."""
    worst, direction, space = np.inf, None, system.space

    def mass_at(x, v, t):
        q = space.move(space.origin(system.dtype), space.unflatten(x))
        return system.mass(q, space.unflatten(v), t)

    for t, (x, v) in zip(PROBE_TIMES, np.random.default_rng(0).normal(size=(2, 2, space.dim)).astype(system.dtype), strict=True):
        mass = evaluate(mass_at, x, 0.1 * v, system.dtype.type(t))
        if traced(mass):
            return
        hessian = np.asarray(mass)
        if not np.isfinite(hessian).all():
            return  # outside the domain of L; the start state is checked instead
        values = np.linalg.svd(hessian, compute_uv=False)
        worst = min(worst, values[-1] / values[0] if values[0] > 0 else 0.0)
        direction = np.linalg.svd(hessian)[2][-1]
    if worst < 1e2 * np.finfo(system.dtype).eps:
        raise DegenerateError(
            f"The Lagrangian is degenerate: ∂²L/∂v² is singular (smallest over largest singular value {worst:.1g}), so momentum does not "
            f"determine velocity along {np.round(np.asarray(direction), 3)}. Give that direction a mass, or remove it from the space."
        )
