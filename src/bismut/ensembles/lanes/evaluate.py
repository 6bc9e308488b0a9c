"""Lanes: a function of one trajectory, run for many as straight vector code.

Small arrays are poison to a compiler that vectorises over their entries: a (3, 3) product under `vmap` becomes many tiny loops. Here the jaxpr of
the one-trajectory function is evaluated with every array held as a NumPy array of *lanes*, one scalar component each, and a lane is an array
over trajectories. What was a matrix product becomes 27 multiplications of long vectors, which fuse with everything around them into one loop.

    a lane is   a constant (a NumPy scalar, folded: 0·x = 0, 1·x = x, so sparse Jacobians cost what they hold),
                a scalar shared by all trajectories (step size, time, parameters), or a vector over trajectories

The result is that of `jax.vmap` to a few ulp. A primitive that is not known here is stacked, run under `vmap`, and unstacked again; which ones, is
noted in `Program.fallbacks`.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from bismut.ensembles.lanes.graph import Node, Opaque, constant, emit, leaf
from bismut.ensembles.lanes.primitives import (
    CALLS,
    ELEMENTWISE,
    NEUTRAL,
    REDUCTIONS,
    STRUCTURAL,
    filled,
    lanes_of,
    operate,
    regrouped,
    stacked,
    take,
    wanted,
)
from bismut.repetition import each_p, expanded, items, pairs_p

# Scalar operations up to which lanes are worth their compile time. At 58 000 (three dipoles in a bath) both compile equally long, and lanes run
# 7 times faster.
LARGEST = 80_000


class Program:
    """A one-trajectory function as a function of lanes."""

    def __init__(self, function: Callable, *example: Any):
        self._closed, shape = jax.make_jaxpr(function, return_shape=True)(*example)
        self._out = jax.tree.structure(shape)
        self.kinds = jax.tree.leaves(shape)
        self.size = operations(self._closed.jaxpr)
        self.fallbacks: Counter[str] = Counter()

    def __call__(self, count: int, *lanes: Any):
        """Evaluate on trees of lane arrays; `count` is the number of trajectories."""
        given = [filled(x.shape, lambda i, x=x: x[i] if constant(x[i]) else leaf(x[i])) for tree in lanes for x in jax.tree.leaves(tree)]
        out = _Evaluation(count, self.fallbacks).run(self._closed.jaxpr, self._closed.consts, given)
        values = emit(lane for x in out for lane in x.ravel())
        return self._out.unflatten(regrouped(values, out))


class Batch:
    """One function for many trajectories, by lanes or by vmap. Arrays over trajectories are packed once and stay packed in a loop."""

    def __init__(self, count: int, by_lanes: bool):
        self.count, self.by_lanes = count, by_lanes

    def pack(self, tree: Any) -> list:
        """A tree of arrays with trajectories first, as a flat list that a compiled loop can carry."""
        if not self.by_lanes:
            return jax.tree.leaves(tree)
        return [lane for leaf in jax.tree.leaves(split(tree)) for lane in leaf.ravel()]

    def unpack(self, flat: list, like: Any) -> Any:
        """The tree again; `like` is the tree of one trajectory."""
        leaves, structure = jax.tree.flatten(like)
        if not self.by_lanes:
            return structure.unflatten(flat)
        return join(structure.unflatten(regrouped(flat, leaves)), self.count)

    def call(self, function: Callable, flat: list, like: Any, *shared: Any) -> Any:
        """function(tree of one trajectory, *shared) for all, with trees in and packed lists out."""
        leaves, structure = jax.tree.flatten(like)
        if not self.by_lanes:
            return jax.tree.leaves(jax.vmap(lambda tree: function(tree, *shared))(structure.unflatten(flat)))
        program = Program(lambda tree: function(tree, *shared), like)
        out = jax.tree.leaves(program(self.count, structure.unflatten(regrouped(flat, leaves))))
        return [
            jnp.broadcast_to(jnp.asarray(lane, kind.dtype), (self.count,))
            for leaf, kind in zip(out, program.kinds, strict=True)
            for lane in leaf.ravel()
        ]


def split(tree: Any) -> Any:
    """A tree of arrays with trajectories along the first axis as a tree of lane arrays."""
    return jax.tree.map(lambda leaf: filled(leaf.shape[1:], lambda i: leaf[(slice(None), *i)]), tree)


def join(tree: Any, count: int) -> Any:
    """The inverse of `split`."""
    return jax.tree.map(lambda x: stacked(list(x.ravel()), x.shape, count), tree)


def operations(jaxpr) -> int:
    """The number of scalar operations a jaxpr stands for, a loop counted once."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [p for value in equation.params.values() for p in (value if isinstance(value, tuple | list) else (value,))]
        nested = [getattr(p, "jaxpr", p) for p in inner if hasattr(getattr(p, "jaxpr", p), "eqns")]
        if nested:
            times = items(equation.primitive, equation.params["layout"]) if equation.primitive in (each_p, pairs_p) else 1
            total += times * sum(operations(j) for j in nested)
        elif equation.primitive.name == "dot_general":
            (left, _), _ = equation.params["dimension_numbers"]
            total += equation.outvars[0].aval.size * int(np.prod([equation.invars[0].aval.shape[d] for d in left]))
        else:
            total += sum(getattr(v.aval, "size", 1) for v in equation.outvars)
    return total


def largest_array(jaxpr) -> int:
    """The number of entries of the largest array a jaxpr makes."""
    largest = 1
    for equation in jaxpr.eqns:
        largest = max([largest, *(getattr(v.aval, "size", 1) for v in equation.outvars)])
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                nested = getattr(inner, "jaxpr", inner)
                if hasattr(nested, "eqns"):
                    largest = max(largest, largest_array(nested))
    return largest


def left_to_vmap(function: Callable, example: Any) -> dict[str, str]:
    """The primitives of a function that lanes do not know, and why each is left to vmap."""
    program = Program(function, example)
    leaves = [jax.ShapeDtypeStruct((2, *jnp.shape(leaf)), jnp.result_type(leaf)) for leaf in jax.tree.leaves(example)]
    tree = jax.tree.structure(example)
    jax.eval_shape(lambda *arrays: join(program(2, split(tree.unflatten(arrays))), 2), *leaves)
    return {name: f"{times} times: {_WHY.get(name, 'not a primitive that lanes know')}" for name, times in program.fallbacks.items()}


_CONTROL = "control flow, whose branches are array code"
_WHY = {"cond": _CONTROL, "scan": _CONTROL, "sort": "a comparison network would be longer than the sort"}
_WHY |= dict.fromkeys(("lu", "cholesky", "triangular_solve", "eigh", "qr", "svd"), "linear algebra of matrices too large to write out")
_WHY |= dict.fromkeys(("gather", "scatter", "scatter-add", "dynamic_slice", "dynamic_update_slice"), "an index that is known only while it runs")


class _Evaluation:
    """One walk through a jaxpr, which builds the graph of its lanes."""

    def __init__(self, count: int, fallbacks: Counter[str]):
        self.count, self.fallbacks, self.memo = count, fallbacks, {}

    def run(self, jaxpr, consts, arguments: list[np.ndarray]) -> list[np.ndarray]:
        env: dict[Any, np.ndarray] = dict(zip(jaxpr.constvars, map(lanes_of, consts), strict=True))
        env.update(zip(jaxpr.invars, arguments, strict=True))
        read = lambda v: lanes_of(v.val) if isinstance(v, Literal) else env[v]
        for equation in jaxpr.eqns:
            outputs = self.apply(equation, [read(v) for v in equation.invars])
            env.update(zip(equation.outvars, outputs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def apply(self, equation, inputs: list[np.ndarray]) -> list[np.ndarray]:
        name, params = equation.primitive.name, equation.params
        if name in ELEMENTWISE and (name != "select_n" or len(inputs) == 3):
            return [self.each(name, inputs, wanted(name, params))]
        if name in STRUCTURAL:
            out = STRUCTURAL[name](inputs, params)
            return out if isinstance(out, list) else [out]
        if name in REDUCTIONS:
            return [self.reduce(REDUCTIONS[name], inputs[0], params["axes"], equation.outvars[0].aval.dtype)]
        if equation.primitive in (each_p, pairs_p):
            closed = jax.make_jaxpr(partial(expanded, equation.primitive, **params))(*(v.aval for v in equation.invars))
            return self.run(closed.jaxpr, closed.consts, inputs)
        special = getattr(self, f"_{name}", None)
        if special is not None:
            return special(inputs, params)
        inner = params.get("jaxpr") or params.get("call_jaxpr")
        if name in CALLS and inner is not None:
            closed = inner if hasattr(inner, "consts") else None
            return self.run(closed.jaxpr if closed else inner, closed.consts if closed else (), inputs)
        return self.fallback(equation, inputs)

    def lane(self, name: str, lanes: list, settings: dict):
        """One operation; equal operations on the same lanes are one node. (Lanes are kept beside the result so that their ids stay theirs.)"""
        key = (name, str(settings) if settings else "", *((lane.dtype.str, lane.item()) if constant(lane) else id(lane) for lane in lanes))
        if key not in self.memo:
            self.memo[key] = (operate(name, lanes, settings), lanes)
        return self.memo[key][0]

    def each(self, name: str, inputs: list[np.ndarray], settings: dict) -> np.ndarray:
        arrays = np.broadcast_arrays(*inputs) if len(inputs) > 1 else inputs
        return filled(arrays[0].shape, lambda i: self.lane(name, [a[i] for a in arrays], settings))

    def reduce(self, name: str, x: np.ndarray, axes, dtype) -> np.ndarray:
        for axis in sorted(map(int, axes), reverse=True):
            if x.shape[axis] == 0:  # a sum of nothing, as the forces of pairs that do not exist
                x = filled((*x.shape[:axis], *x.shape[axis + 1 :]), lambda i: dtype.type(NEUTRAL[name]))
                continue
            parts = [take(x, k, axis) for k in range(x.shape[axis])]
            total = parts[0]
            for part in parts[1:]:
                total = self.each(name, [total, part], {})
            x = total
        return x

    def _dot_general(self, inputs, params):
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        a, b = inputs
        lf = [d for d in range(a.ndim) if d not in (*lc, *lb)]
        rf = [d for d in range(b.ndim) if d not in (*rc, *rb)]
        batch, depth = [a.shape[d] for d in lb], int(np.prod([a.shape[d] for d in lc]))
        rows, columns = (int(np.prod([x.shape[d] for d in free])) for x, free in ((a, lf), (b, rf)))
        A = a.transpose([*lb, *lf, *lc]).reshape(*batch, rows, depth)
        B = b.transpose([*rb, *rc, *rf]).reshape(*batch, depth, columns)

        def entry(i):
            *g, r, c = i
            total: Any = np.dtype(params.get("preferred_element_type") or float).type(0)
            for k in range(depth):
                total = self.lane("add", [total, self.lane("mul", [A[(*g, r, k)], B[(*g, k, c)]], {})], {})
            return total

        out = filled((*batch, rows, columns), entry)
        return [out.reshape([*batch, *(a.shape[d] for d in lf), *(b.shape[d] for d in rf)])]

    def _optimization_barrier(self, inputs, params):
        flat = [lane for x in inputs for lane in x.ravel()]
        held = [lane for lane in flat if isinstance(lane, Node)]
        parts = iter(Opaque(lambda *values: jax.lax.optimization_barrier(values), tuple(held), 0.0).parts(len(held)))
        return regrouped([next(parts) if isinstance(lane, Node) else lane for lane in flat], inputs)

    def _while(self, inputs, params):
        """The loop runs until every trajectory has finished; those that have keep what they had, as under vmap."""
        nc, nb = params["cond_nconsts"], params["body_nconsts"]
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        types = [v.aval.dtype for v in body.jaxpr.outvars]
        like = [np.empty(x.shape) for x in inputs[nc + nb :]]
        lanes = [lane for x in inputs for lane in x.ravel()]
        dtypes = [t for t, x in zip(types, like, strict=True) for _ in range(x.size)]
        full = lambda value, dtype: jnp.broadcast_to(jnp.asarray(value, dtype), (self.count,))

        def inner(jaxpr, consts, flat):
            arguments = [*consts, *regrouped([leaf(value) for value in flat], like)]
            out = _Evaluation(self.count, self.fallbacks).run(jaxpr.jaxpr, jaxpr.consts, arguments)
            return [lane for x in out for lane in x.ravel()]

        def loop(*values):
            known = regrouped([v if constant(v) else leaf(v) for v in values], inputs)
            start = [full(v, t) for v, t in zip(values[len(values) - len(dtypes) :], dtypes, strict=True)]

            def going(flat):
                return full(emit(inner(cond, known[:nc], flat))[0], bool)

            def step(carry):
                flat, on = carry
                held = [leaf(value) for value in flat]
                arguments = [*known[nc : nc + nb], *regrouped(held, like)]
                evaluation = _Evaluation(self.count, self.fallbacks)
                out = [lane for x in evaluation.run(body.jaxpr, body.consts, arguments) for lane in x.ravel()]
                kept = leaf(on)
                new = [evaluation.lane("select_n", [kept, old, lane], {}) for old, lane in zip(held, out, strict=True)]
                values = [full(v, t) for v, t in zip(emit(new), dtypes, strict=True)]
                return values, going(values)

            return jax.lax.while_loop(lambda carry: jnp.any(carry[1]), step, (start, going(start)))[0]

        return regrouped(Opaque(loop, tuple(lanes), 0.0).parts(len(dtypes)), like)

    def fallback(self, equation, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Stack, run under vmap, unstack."""
        if not inputs:  # nothing that could differ between trajectories
            out = equation.primitive.bind(**equation.params)
            return [lanes_of(x) for x in (out if equation.primitive.multiple_results else [out])]
        self.fallbacks[equation.primitive.name] += 1
        shapes = [v.aval for v in equation.outvars]

        def bind(*arguments):
            out = equation.primitive.bind(*arguments, **equation.primitive.get_bind_params(equation.params))
            return tuple(out) if equation.primitive.multiple_results else (out,)

        def run(*values):
            values, arrays = iter(values), []
            for x, v in zip(inputs, equation.invars, strict=True):
                arrays.append(stacked([next(values) for _ in range(x.size)], x.shape, self.count, v.aval.dtype))
            out = jax.vmap(bind)(*arrays)
            return [array[(slice(None), *i)] for array, aval in zip(out, shapes, strict=True) for i in np.ndindex(aval.shape)]

        piece = Opaque(run, tuple(lane for x in inputs for lane in x.ravel()), 0.0)
        return regrouped(piece.parts(sum(aval.size for aval in shapes)), shapes)
