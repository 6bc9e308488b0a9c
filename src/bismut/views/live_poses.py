"""How bodies are drawn from a state while a program runs.

    (x, R) = c + A s        entries s of the state; A is sparse, mostly a choice of entries
    (x, R) = f(s)           otherwise: the picture itself, compiled with the steps

A picture is a function of arrays in NumPy. Which of the two it is, is found by asking it about many states. In the second case it is followed through
NumPy's arrays of objects, whose entries here are numbers that JAX traces; that what was followed is what the picture does is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.drawing import Drawing
from bismut.errors import BismutError
from bismut.mechanics import State, System
from bismut.programs.evaluation import evaluate
from bismut.views.motion import Motion
from bismut.views.view import drawn

_FITTED = 300  # entries of a state up to which A may be full
_MOST = 3000  # numbers that are followed one by one
_NEAR = 1e-8


class Poses(NamedTuple):
    """A drawing at the start, and how (x, R) follow from a state.

    sources   which leaves of a state are read, one after the other; none where `function` is compiled
    constant  (outputs,), and A as rows: places (outputs + 1,), columns and factors of what is not zero
    function  state ↦ (x, R), (K, 3) and (K, 3, 3)
    """

    drawing: Drawing
    sources: list[int]
    constant: np.ndarray
    places: np.ndarray
    columns: np.ndarray
    factors: np.ndarray
    function: Callable[[State], Any] | None = None


def poses(system: System, state: State, picture: Callable | None) -> Poses:
    """How to draw states like this one."""
    start = _frames([state])
    still = _drawing(system, start, picture)
    leaves = jax.tree.leaves(state)
    size = sum(np.size(leaf) for leaf in leaves)
    several = _near(system, state, 16 + (size if size <= _FITTED else 0))
    values = np.concatenate([np.asarray(leaf, float).reshape(len(leaf), -1) for leaf in jax.tree.leaves(several)], 1)
    outputs = _flat(_drawing(system, several, picture))
    scale = np.abs(outputs).max() + 1e-300
    rows = [_row(values, output, _NEAR * scale, size <= _FITTED) for output in outputs.T]
    if all(row is not None for row in rows):
        lengths = [len(row[1]) for row in rows]  # pyright: ignore[reportOptionalSubscript]
        parts = [np.concatenate([np.atleast_1d(row[i]) for row in rows] or [np.zeros(0)]) for i in range(3)]  # pyright: ignore[reportOptionalSubscript]
        return Poses(still, list(range(len(leaves))), parts[0], np.cumsum([0, *lengths]), parts[1], parts[2])
    if outputs.shape[1] > _MOST:
        raise BismutError(f"its picture makes {outputs.shape[1]} numbers out of a state by formulas, more than {_MOST}")
    function = _followed(system, several, picture)
    _check(function, several, outputs, scale)
    identity = np.arange(outputs.shape[1])
    return Poses(still, [], np.zeros(len(identity)), np.arange(len(identity) + 1), identity, np.ones(len(identity)), function)


def _row(values: np.ndarray, output: np.ndarray, tolerance: float, fitted: bool) -> tuple[float, list, list] | None:
    """One row of (c, A), or None if the output is no such function of the entries."""
    if np.ptp(output) <= tolerance:
        return float(output[0]), [], []
    same = np.flatnonzero(np.abs(values - output[:, None]).max(0) <= tolerance)
    if len(same):
        return 0.0, [int(same[0])], [1.0]
    if not fitted:
        return None
    known = len(values) - 8  # the others judge
    matrix = np.concatenate([values, np.ones((len(values), 1))], 1)
    weights = np.linalg.lstsq(matrix[:known], output[:known], rcond=1e-12)[0]
    if np.abs(matrix @ weights - output).max() > 10 * tolerance:
        return None
    some = np.flatnonzero(np.abs(weights[:-1]) > 1e-12 * np.abs(weights).max())
    return float(weights[-1]), some.tolist(), weights[some].tolist()


def _near(system: System, state: State, count: int) -> State:
    """The state, and others like it: points moved, momenta changed."""
    random = np.random.default_rng(0)
    space, dtype = system.space, system.dtype
    like = jax.eval_shape(lambda: space.zero(dtype))
    moves = jax.tree.map(lambda leaf: random.normal(size=(count, *leaf.shape)), like)
    q = evaluate(jax.vmap(lambda v: space.move(jax.tree.map(jnp.asarray, state.q), v)), moves)
    several = [State(jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], q), _shaken(state.p, random), state.ledger) for i in range(count)]
    return _frames([state, *several])


def _shaken(tree: Any, random: np.random.Generator) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf) + random.normal(size=np.shape(leaf)), tree)


def _frames(states: list[State]) -> State:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *states)


def _drawing(system: System, states: State, picture: Callable | None) -> Drawing:
    count = len(jax.tree.leaves(states)[0])
    return drawn(Motion("", np.arange(float(count)), states.q, states.p, system, picture), None, None)


def _flat(drawing: Drawing) -> np.ndarray:
    """(frames, outputs): x, then R."""
    x = np.asarray(drawing.x)
    parts = [x.reshape(len(x), -1)] + ([] if drawing.R is None else [np.asarray(drawing.R).reshape(len(x), -1)])
    return np.concatenate(parts, 1)


class TracedNumber:
    """A number that JAX traces, with an example of it, which decides where a picture asks for a plain number."""

    def __init__(self, value: Any, example: float):
        self.value, self.example = value, float(example)

    def __float__(self) -> float:
        return self.example

    def __lt__(self, other: Any) -> bool:
        return self.example < float(other)

    def __gt__(self, other: Any) -> bool:
        return self.example > float(other)

    def __le__(self, other: Any) -> bool:
        return self.example <= float(other)

    def __ge__(self, other: Any) -> bool:
        return self.example >= float(other)

    def __eq__(self, other: Any) -> bool:
        return self.example == float(other)

    def __ne__(self, other: Any) -> bool:
        return self.example != float(other)

    __hash__ = None  # type: ignore[assignment]


def _binary(name: str, turned: bool) -> Callable:
    operation = getattr(jnp, name), getattr(np, name)

    def apply(self: TracedNumber, other: Any) -> Any:
        both = (other, self) if turned else (self, other)
        return TracedNumber(operation[0](*(getattr(x, "value", x) for x in both)), operation[1](*map(float, both)))

    return apply


def _unary(name: str) -> Callable:
    return lambda self: TracedNumber(getattr(jnp, name)(self.value), getattr(np, name)(self.example))


for _name, _ufunc in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power"}.items():
    setattr(TracedNumber, f"__{_name}__", _binary(_ufunc, turned=False))
    setattr(TracedNumber, f"__r{_name}__", _binary(_ufunc, turned=True))
for _name, _ufunc in {"__neg__": "negative", "__abs__": "abs", "conjugate": "conjugate"}.items():
    setattr(TracedNumber, _name, _unary(_ufunc))
for _ufunc in ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "exp", "log", "sqrt"):
    setattr(TracedNumber, _ufunc, _unary(_ufunc))
for _ufunc in ("arctan2", "hypot"):
    setattr(TracedNumber, _ufunc, _binary(_ufunc, turned=False))


def _followed(system: System, several: State, picture: Callable | None) -> Callable[[State], Any]:
    """The picture as a function that JAX can trace. Its first frame is the start, as when it is asked with numbers."""

    def function(state: State) -> Any:
        def entries(leaf: Any, known: np.ndarray) -> np.ndarray:
            frames = np.empty((2, *known.shape[1:]), object)
            for index in np.ndindex(known.shape[1:]):
                frames[(0, *index)] = TracedNumber(known[(0, *index)], known[(0, *index)])
                frames[(1, *index)] = TracedNumber(leaf[index], known[(1, *index)])
            return frames

        flat = _flat(_drawing(system, jax.tree.map(entries, state, several), picture))[1]
        return jnp.stack([jnp.asarray(getattr(x, "value", x), system.dtype) for x in flat])

    return function


def _check(function: Callable, several: State, outputs: np.ndarray, scale: float) -> None:
    try:
        again = evaluate(jax.vmap(function), several)
    except Exception as problem:
        raise BismutError(f"its picture cannot be followed ({type(problem).__name__}: {problem})") from problem
    if not np.abs(np.asarray(again) - outputs).max() <= 1e-6 * scale:
        raise BismutError("its picture is no function of one state alone")
