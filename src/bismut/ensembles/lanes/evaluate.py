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
from jax.extend.core import Literal, jaxpr_as_fun

from bismut.ensembles.lanes.primitives import (
    CALLS,
    ELEMENTWISE,
    REDUCTIONS,
    STRUCTURAL,
    add,
    constant,
    filled,
    lanes_of,
    mul,
    regrouped,
    select,
    stack,
    take,
    wanted,
    zero,
)

LARGEST = 20_000  # scalar operations up to which lanes are worth their compile time


class Program:
    """A one-trajectory function as a function of lanes."""

    def __init__(self, function: Callable, *example: Any):
        self.closed, shape = jax.make_jaxpr(function, return_shape=True)(*example)
        self._out = jax.tree.structure(shape)
        self.size = operations(self.closed.jaxpr)
        self.fallbacks: Counter[str] = Counter()

    def __call__(self, count: int, *lanes: Any):
        """Evaluate on trees of lane arrays; `count` is the number of trajectories."""
        leaves = [leaf for tree in lanes for leaf in jax.tree.leaves(tree)]
        out = _Evaluation(count, self.fallbacks).run(self.closed.jaxpr, self.closed.consts, leaves)
        return self._out.unflatten(out)


class Batch:
    """One function for many trajectories, by lanes or by vmap. Arrays over trajectories are packed once and stay packed in a loop."""

    def __init__(self, count: int, by_lanes: bool):
        self.count, self.by_lanes = count, by_lanes
        self._programs: dict[Callable, Program] = {}

    def _program(self, function: Callable, *example: Any) -> Program:
        """The function, traced once however often a compiled loop walks through its body (which it does several times)."""
        if function not in self._programs:
            self._programs[function] = Program(function, *jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf), jnp.result_type(leaf)), example))
        return self._programs[function]

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
        program = self._program(function, like, *shared)
        if not self.by_lanes:
            one, kinds = jaxpr_as_fun(program.closed), program.closed.in_avals
            typed = [jnp.asarray(value, kind.dtype) for value, kind in zip([*flat, *shared], kinds, strict=True)]
            return list(jax.vmap(one, in_axes=[0] * len(flat) + [None] * len(shared))(*typed))
        out = program(self.count, structure.unflatten(regrouped(flat, leaves)), *map(lanes_of, shared))
        return [
            jnp.broadcast_to(jnp.asarray(lane, kind.dtype), (self.count,))
            for leaf, kind in zip(jax.tree.leaves(out), program.closed.out_avals, strict=True)
            for lane in leaf.ravel()
        ]


def split(tree: Any) -> Any:
    """A tree of arrays with trajectories along the first axis as a tree of lane arrays."""
    return jax.tree.map(lambda leaf: filled(leaf.shape[1:], lambda i: leaf[(slice(None), *i)]), tree)


def join(tree: Any, count: int) -> Any:
    """The inverse of `split`."""
    return jax.tree.map(lambda leaf: stack(leaf, count), tree)


def operations(jaxpr) -> int:
    """The number of scalar operations a jaxpr stands for, a loop counted once."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [p for value in equation.params.values() for p in (value if isinstance(value, tuple | list) else (value,))]
        nested = [getattr(p, "jaxpr", p) for p in inner if hasattr(getattr(p, "jaxpr", p), "eqns")]
        if nested:
            total += sum(operations(j) for j in nested)
        elif equation.primitive.name == "dot_general":
            (left, _), _ = equation.params["dimension_numbers"]
            total += equation.outvars[0].aval.size * int(np.prod([equation.invars[0].aval.shape[d] for d in left]))
        else:
            total += sum(getattr(v.aval, "size", 1) for v in equation.outvars)
    return total


class _Evaluation:
    """One walk through a jaxpr."""

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
        if name in ELEMENTWISE:
            return [self.each(name, partial(ELEMENTWISE[name], **wanted(name, params)), inputs, params)]
        if name in STRUCTURAL:
            out = STRUCTURAL[name](inputs, params)
            return out if isinstance(out, list) else [out]
        if name in REDUCTIONS:
            return [self.reduce(REDUCTIONS[name], inputs[0], params["axes"])]
        special = getattr(self, f"_{name}", None)
        if special is not None:
            done = special(inputs, params)
            if done is not None:
                return done
        inner = params.get("jaxpr") or params.get("call_jaxpr")
        if name in CALLS and inner is not None:
            closed = inner if hasattr(inner, "consts") else None
            return self.run(closed.jaxpr if closed else inner, closed.consts if closed else (), inputs)
        return self.fallback(equation, inputs)

    def each(self, name: str, operation: Callable, inputs: list[np.ndarray], params) -> np.ndarray:
        arrays = np.broadcast_arrays(*inputs) if len(inputs) > 1 else inputs
        out = np.empty(arrays[0].shape, object)
        settings = str(wanted(name, params))
        for i in np.ndindex(out.shape):
            lanes = [a[i] for a in arrays]
            # Equal operations on the same lanes are done once; the lanes are kept beside the result so that their ids stay theirs.
            key = (name, settings, *(("c", lane.dtype.str, lane.item()) if constant(lane) else id(lane) for lane in lanes))
            if key not in self.memo:
                self.memo[key] = (operation(*lanes), lanes)
            out[i] = self.memo[key][0]
        return out

    def reduce(self, operation: Callable, x: np.ndarray, axes) -> np.ndarray:
        for axis in sorted(map(int, axes), reverse=True):
            parts = [take(x, k, axis) for k in range(x.shape[axis])]
            total = parts[0]
            for part in parts[1:]:
                total = filled(total.shape, lambda i, a=total, b=part: operation(a[i], b[i]))
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
            total: Any = zero(params.get("preferred_element_type"))
            for k in range(depth):
                total = add(total, mul(A[(*g, r, k)], B[(*g, k, c)]))
            return total

        out = filled((*batch, rows, columns), entry)
        return [out.reshape([*batch, *(a.shape[d] for d in lf), *(b.shape[d] for d in rf)])]

    def _select_n(self, inputs, params):
        which, *cases = inputs
        if len(cases) != 2 or np.ndim(which) not in (0, cases[0].ndim):
            return None
        which = np.broadcast_to(which, cases[0].shape)
        return [filled(cases[0].shape, lambda i: select(which[i], cases[0][i], cases[1][i]))]

    def _optimization_barrier(self, inputs, params):
        flat = [lane for x in inputs for lane in x.ravel()]
        held = iter(jax.lax.optimization_barrier([lane for lane in flat if not constant(lane)]))
        return regrouped([lane if constant(lane) else next(held) for lane in flat], inputs)

    def _while(self, inputs, params):
        """The loop runs until every trajectory has finished; those that have keep what they had, as under vmap."""
        nc, nb = params["cond_nconsts"], params["body_nconsts"]
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        cond_consts, body_consts, start = inputs[:nc], inputs[nc : nc + nb], inputs[nc + nb :]
        types = [v.aval.dtype for v in body.jaxpr.outvars]
        full = lambda x, dtype: jnp.broadcast_to(jnp.asarray(x, dtype), (self.count,))
        pack = lambda arrays: [full(x, t) for array, t in zip(arrays, types, strict=True) for x in array.ravel()]

        like = [np.empty(x.shape) for x in start]

        def inner(jaxpr, consts, flat):
            return _Evaluation(self.count, self.fallbacks).run(jaxpr.jaxpr, jaxpr.consts, [*consts, *regrouped(flat, like)])

        def going(flat):
            return full(inner(cond, cond_consts, flat)[0][()], bool)

        def step(carry):
            flat, on = carry
            new = [jnp.where(on, a, b) for a, b in zip(pack(inner(body, body_consts, flat)), flat, strict=True)]
            return new, going(new)

        first = pack(start)
        flat, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[1]), step, (first, going(first)))
        return regrouped(flat, like)

    def fallback(self, equation, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Stack, run under vmap, unstack."""
        self.fallbacks[equation.primitive.name] += 1
        stacked = [stack(x, self.count, v.aval.dtype) for x, v in zip(inputs, equation.invars, strict=True)]

        def bind(*arguments):
            out = equation.primitive.bind(*arguments, **equation.primitive.get_bind_params(equation.params))
            return tuple(out) if equation.primitive.multiple_results else (out,)

        if not stacked:  # nothing that could differ between trajectories
            return [lanes_of(out) for out in bind()]
        return [split(out) for out in jax.vmap(bind)(*stacked)]
