"""Loops written in Python, rolled up: equal operations on different entries become one operation on arrays.

    for i: for j < i:  U = U + u(x[i] − x[j])      ↦      U = Σ u(x[I] − x[J]),   I, J the numbers of all pairs

JAX unrolls such a loop: 30 points are 435 pairs and 3500 equations, which take minutes to differentiate and to compile. So a function that is long
when it is traced is read once, and carried out as

    batches   equations alike in all but their inputs, as deep as each other: one, by `vmap`
    sums      ((t₁ + t₂) + t₃) + …: terms of one batch are summed over it
    windows   x[i] for several i: one gather;   F.at[i].add(f), and what JAX makes of a derivative of x[i]: one scatter-add

whatever the order in which they stand. Derivatives are taken of that, so they are as short. Terms are added in their order, those of each batch
first: that is the only thing that changes, by round-off.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend import core

from bismut.compile_cache import LRUCache

log = logging.getLogger(__name__)

LONG = 300  # equations up to which a function is left as it is: written out, they are in registers
GAIN = 4  # how many times fewer there must be afterwards
_CHAIN = 8  # links from which sums, updates and joined parts are taken together
_SUMS = ("add", "add_any", "sub")
_UNREADABLE = ("custom_", "while[", "cond[", "scan[", "each[", "pairs[")  # functions with rules of their own, and control flow

_READ = LRUCache(128)


def rolled_up(function: Any, *arguments: Any, **named: Any) -> Any:
    """function(*arguments, **named), with its loops rolled up where it is long and something is traced. It must be pure."""
    leaves, structure = jax.tree.flatten((arguments, named))
    if not any(isinstance(leaf, Tracer) for leaf in leaves):
        return function(*arguments, **named)
    try:
        kinds = tuple(map(jax.typeof, leaves))
    except TypeError:  # something that is no array
        return function(*arguments, **named)
    key = id(function), structure, kinds, jax.config.values["jax_enable_x64"]
    # With the function, so that its number stays its own.
    _, batched = _READ.get(key, lambda: (function, _read(function, arguments, named)))
    return function(*arguments, **named) if batched is None else batched(*leaves)


def _read(function: Callable, arguments: tuple, named: dict) -> Callable | None:
    """The function of flat arrays with its loops rolled up; None where it stays as it is."""
    try:
        closed, out = jax.make_jaxpr(lambda given: function(*given[0], **given[1]), return_shape=True)((arguments, named))
    except Exception:  # where the function itself fails, it fails when it is called
        return None
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) < LONG or jaxpr.effects or any(isinstance(value, Tracer) for value in closed.consts):
        return None
    try:
        plan = _BatchPlan(_Graph(closed))
        if GAIN * len(plan.steps) > len(jaxpr.eqns):
            return None
        kinds = jax.eval_shape(plan, jax.tree.leaves((arguments, named)))
    except NotImplementedError:  # an operation that has no rule for batches
        return None
    except Exception as problem:  # long as it is, it is right
        log.warning("a function of %d operations stays as long as it is: %s: %s", len(jaxpr.eqns), type(problem).__name__, problem)
        return None
    if [(x.shape, x.dtype) for x in kinds] != [(v.aval.shape, v.aval.dtype) for v in jaxpr.outvars]:
        log.warning("a function of %d operations stays as long as it is: rolled up, it gives other kinds of arrays", len(jaxpr.eqns))
        return None
    structure = jax.tree.structure(out)
    return lambda *leaves: structure.unflatten(plan(leaves))


class _Node:
    """One operation: its `kind` and `key` say which, inputs and outputs are numbers of values."""

    def __init__(self, kind: str, key: Hashable, inputs: Sequence[int], outputs: Sequence[int], primitive: Any = None, params: Any = None):
        self.kind, self.key, self.inputs, self.outputs, self.primitive, self.params = kind, key, list(inputs), list(outputs), primitive, params


class _Graph:
    """The equations of a jaxpr as nodes, each value computed once, and long chains as one node each.

    avals, known   of each value: shape and type; the array it is, or None
    """

    def __init__(self, closed: Any):
        self.avals: list = []
        self.known: list[np.ndarray | None] = []
        self._texts: dict[int, tuple[Any, Hashable]] = {}
        self._literals: dict[Hashable, int] = {}
        jaxpr, env = closed.jaxpr, {}
        self.inputs = [env.setdefault(v, self._value(v.aval)) for v in jaxpr.invars]
        self.consts = [(env.setdefault(v, self._value(v.aval)), value) for v, value in zip(jaxpr.constvars, closed.consts, strict=True)]
        nodes, computed = [], {}
        for equation in jaxpr.eqns:
            inputs = [self._literal(v) if isinstance(v, core.Literal) else env[v] for v in equation.invars]
            key = (equation.primitive.name, self._frozen(equation.params))
            outputs = computed.get((key, *inputs))
            if outputs is None:
                outputs = computed[(key, *inputs)] = [self._value(v.aval) for v in equation.outvars]
                nodes.append(_Node("equation", key, inputs, outputs, equation.primitive, equation.params))
            env.update(zip(equation.outvars, outputs, strict=True))
        self.outputs = [self._literal(v) if isinstance(v, core.Literal) else env[v] for v in jaxpr.outvars]
        self.nodes = self._with_chains(nodes)

    def _value(self, aval: Any, known: np.ndarray | None = None) -> int:
        self.avals.append(aval)
        self.known.append(known)
        return len(self.avals) - 1

    def _literal(self, literal: Any) -> int:
        value = np.asarray(literal.val, literal.aval.dtype)
        key = value.tobytes(), value.shape, value.dtype
        if key not in self._literals:
            self._literals[key] = self._value(literal.aval, value)
        return self._literals[key]

    def _frozen(self, params: dict) -> Hashable:
        """Equal for parameters that are the same; for those of which it cannot be said, equal to nothing."""
        return tuple((name, self._frozen_part(params[name])) for name in sorted(params))

    def _frozen_part(self, part: Any) -> Hashable:
        if isinstance(part, core.ClosedJaxpr | core.Jaxpr):
            if id(part) not in self._texts:
                text = str(part)
                opaque = getattr(part, "consts", None) or any(word in text for word in _UNREADABLE)
                self._texts[id(part)] = part, object() if opaque else text
            return self._texts[id(part)][1]
        try:
            hash(part)
        except TypeError:
            return object()
        return part

    def _with_chains(self, nodes: list[_Node]) -> list[_Node]:
        """Chains of sums and of updates as one node each."""
        uses = Counter(self.outputs)
        uses.update(v for node in nodes for v in node.inputs)
        producer = {v: node for node in nodes for v in node.outputs}
        before: dict[_Node, _Node | None] = {}  # the link that a link goes on from
        length: dict[_Node, int] = {}
        for node in nodes:
            if node.primitive.name in _SUMS or self._adds_one_window(node):
                ends = [producer.get(v) for v in (node.inputs[:2] if node.primitive.name in _SUMS[:2] else node.inputs[:1]) if uses[v] == 1]
                links = [end for end in ends if end in length and self._alike(end, node)]
                before[node] = max(links, key=lambda end: length[end], default=None)
                length[node] = 1 + max((length[end] for end in links), default=0)
        inside = {link for link in before.values() if link is not None}
        chains = {node: self._links(node, before, producer) for node, n in length.items() if n >= _CHAIN and node not in inside}
        gone = {link for links in chains.values() for link in links}
        out: list[_Node] = []
        for node in nodes:
            if node in chains:
                out += self._summed(chains[node], producer, uses) if node.primitive.name in _SUMS else [self._updated(chains[node])]
            elif node not in gone:
                out.append(node)
        return self._reached(out)

    def _adds_one_window(self, node: _Node) -> bool:
        if node.primitive.name != "scatter-add":
            return False
        numbers, new = node.params["dimension_numbers"], self.avals[node.inputs[2]]
        return len(self.avals[node.inputs[1]].shape) == 1 and numbers.update_window_dims == tuple(range(len(new.shape)))

    @staticmethod
    def _alike(one: _Node, other: _Node) -> bool:
        sums = one.primitive.name in _SUMS and other.primitive.name in _SUMS
        return sums or one.key == other.key

    def _links(self, last: _Node, before: dict, producer: dict) -> list[_Node]:
        """The links of a chain from the first to the last. Its first sum is a term if it is made as the second term is: U = (a − b) + (c − d) + …"""
        links, node = [], last
        while node is not None:
            links.append(node)
            node = before[node]
        links.reverse()
        first, second = links[:2]
        terms = [producer.get(v) for v in second.inputs[:2] if v not in first.outputs]
        if first.primitive.name in _SUMS and any(term is not None and term.key == first.key for term in terms):
            return links[1:]
        return links

    def _summed(self, links: list[_Node], producer: dict, uses: Counter) -> list[_Node]:
        """Σ ± terms as one node, and what is written into zeros before it is added as another."""
        made: set[int] = set()
        terms: list[tuple[int, int]] = []
        for link in links:
            signs = (1, -1) if link.primitive.name == "sub" else (1, 1)
            terms += [(v, sign) for v, sign in zip(link.inputs, signs, strict=True) if v not in made]
            made.update(link.outputs)
        zero = lambda v: self.known[v] is not None and not np.any(self.known[v])
        terms = [(v, sign) for v, sign in terms if not zero(v)]
        aval, nodes = self.avals[links[-1].outputs[0]], []
        placed: dict[tuple, list[int]] = defaultdict(list)
        for v, sign in terms:
            if sign == 1 and uses[v] == 1 and v in producer and self._pads(producer[v]):
                placed[self.avals[producer[v].inputs[0]].shape].append(v)
        for padded in (group for group in placed.values() if len(group) >= _CHAIN):
            total = self._value(aval)
            starts = np.array([[low for low, _, _ in producer[v].params["padding_config"]] for v in padded], np.int32)
            nodes.append(_Node("place", object(), [producer[v].inputs[0] for v in padded], [total], params=starts))
            terms = [(v, sign) for v, sign in terms if v not in set(padded)] + [(total, 1)]
        sum_ = _Node("sum", (), [v for v, _ in terms], links[-1].outputs, params=[sign for _, sign in terms])
        return [*nodes, sum_]

    def _pads(self, node: _Node) -> bool:
        """Whether it writes an array into zeros."""
        if node.kind != "equation" or node.primitive.name != "pad":
            return False
        filler = self.known[node.inputs[1]]
        return filler is not None and not filler.any() and all(low >= 0 and high >= 0 and not gap for low, high, gap in node.params["padding_config"])

    def _updated(self, links: list[_Node]) -> _Node:
        """A chain of scatter-adds: base, indices and updates."""
        inputs = [links[0].inputs[0], *(link.inputs[1] for link in links), *(link.inputs[2] for link in links)]
        return _Node("scatter", object(), inputs, links[-1].outputs, params=links[0].params)

    def _reached(self, nodes: list[_Node]) -> list[_Node]:
        """Without what nobody reads."""
        wanted, out = set(self.outputs), []
        for node in reversed(nodes):
            if wanted.intersection(node.outputs):
                wanted.update(node.inputs)
                out.append(node)
        return out[::-1]


Place = tuple[int, int | None]  # of a value: which array, and which row of it, None for all


class _BatchPlan:
    """Nodes in batches, as steps that each add arrays to a list."""

    def __init__(self, graph: _Graph):
        self.graph, self.steps, self.count = graph, [], 0
        self.places: dict[int, Place] = {}
        self.given = [self._array(v) for v in [*graph.inputs, *(v for v, _ in graph.consts)]]
        depth: dict[int, int] = defaultdict(int)
        levels: dict[int, dict[Hashable, list[_Node]]] = defaultdict(lambda: defaultdict(list))
        of_depth: dict[int, list[_Node]] = defaultdict(list)
        for node in graph.nodes:
            level = 1 + max((depth[v] for v in node.inputs), default=0)
            depth.update(dict.fromkeys(node.outputs, level))
            of_depth[level].append(node)
        for level in sorted(of_depth):
            for node in of_depth[level]:
                levels[level][self._key(node)].append(node)
            for nodes in levels[level].values():
                self._batch(nodes)

    def __call__(self, leaves: Sequence) -> list:
        arrays: list = [None] * self.count
        for place, value in zip(self.given, [*leaves, *(value for _, value in self.graph.consts)], strict=True):
            arrays[place] = value
        for outputs, step in self.steps:
            for place, value in zip(outputs, step(arrays), strict=True):
                arrays[place] = value
        return [self._one(arrays, v) for v in self.graph.outputs]

    # Where values are.

    def _array(self, value: int) -> int:
        """A new array for one value."""
        self.places[value] = self.count, None
        self.count += 1
        return self.count - 1

    def _rows(self, values: Sequence[int]) -> int:
        """A new array whose rows are values."""
        self.places.update({v: (self.count, row) for row, v in enumerate(values)})
        self.count += 1
        return self.count - 1

    def _batch_of(self, value: int) -> int | None:
        """The array of whose rows it is one."""
        array, row = self.places.get(value, (None, None))
        return None if row is None else array

    def _one(self, arrays: list, value: int) -> Any:
        known = self.graph.known[value]
        if known is not None:
            return known
        array, row = self.places[value]
        return arrays[array] if row is None else arrays[array][row]

    def _stack(self, values: Sequence[int]) -> tuple[Callable[[list], Any], bool]:
        """(arrays ↦ values along a new first axis, True); where all are one, (arrays ↦ that one, False)."""
        first = values[0]
        if all(v == first for v in values):
            return lambda arrays: self._one(arrays, first), False
        known = [self.graph.known[v] for v in values]
        if all(value is not None for value in known):
            constants = np.stack(known)  # pyright: ignore[reportArgumentType, reportCallIssue]
            return lambda arrays: constants, True
        origins: dict[int | None, list[int]] = defaultdict(list)  # by batch, None for what is in none
        for k, v in enumerate(values):
            origins[self._batch_of(v)].append(k)
        parts = [self._part(batch, [values[k] for k in at]) for batch, at in origins.items()]
        order = np.argsort(np.concatenate(list(origins.values())))
        if len(parts) == 1:
            return parts[0], True
        return lambda arrays: _taken(jnp.concatenate([part(arrays) for part in parts]), order), True

    def _part(self, batch: int | None, values: list[int]) -> Callable[[list], Any]:
        if batch is None:
            return lambda arrays: jnp.stack([self._one(arrays, v) for v in values])
        rows = np.array([self.places[v][1] for v in values])
        return lambda arrays: _taken(arrays[batch], rows)

    # Batches.

    def _key(self, node: _Node) -> Hashable:
        """Equal for nodes that can be one."""
        if node.kind == "sum":
            return "sum", tuple(sorted({self._class(v, sign) for v, sign in zip(node.inputs, node.params, strict=True)}))
        if node.kind != "equation":
            return node.key
        if self._is_window(node):
            return "window", node.inputs[0], self.graph.avals[node.outputs[0]].shape
        return node.key, tuple(self._kind(v) for v in node.inputs)

    def _kind(self, value: int) -> Hashable:
        aval, batch = self.graph.avals[value], self._batch_of(value)
        return batch if batch is not None else (aval.shape, aval.dtype)

    def _class(self, value: int, sign: int) -> tuple[int, int, int]:
        """Of which array a term is a row, or which value it is."""
        batch = self._batch_of(value)
        return (0, value, sign) if batch is None else (1, batch, sign)

    def _is_window(self, node: _Node) -> bool:
        """A part of an array that is the same for others: of these, one gather."""
        plain = node.primitive.name == "slice" and all(n == 1 for n in node.params["strides"] or ())
        return plain and self._batch_of(node.inputs[0]) is None

    def _batch(self, nodes: list[_Node]) -> None:
        first = nodes[0]
        if first.kind == "sum":
            step = self._sum(nodes)
        elif first.kind == "place":
            step = self._place(first)
        elif first.kind == "scatter":
            step = self._scatter(first)
        elif len(nodes) > 1 and self._is_window(first):
            nodes = sorted(nodes, key=lambda node: node.params["start_indices"])
            step = self._windows(nodes)
        elif first.primitive.name == "concatenate" and len(first.inputs) >= _CHAIN and len(nodes) == 1:
            step = self._joined(first)
        else:
            # In the order of what they read: where that is an array from end to end, nothing is gathered.
            nodes = sorted(nodes, key=lambda node: [self.places.get(v, (0, None))[1] or 0 for v in node.inputs])
            step = self._equations(nodes)
        columns = zip(*(node.outputs for node in nodes), strict=True)
        outputs = [self._rows(column) if len(nodes) > 1 else self._array(column[0]) for column in columns]
        self.steps.append((outputs, step))

    def _equations(self, nodes: list[_Node]) -> Callable[[list], list]:
        primitive, params = nodes[0].primitive, nodes[0].params
        columns = [self._stack(column) for column in zip(*(node.inputs for node in nodes), strict=True)]
        axes, several = tuple(0 if batched else None for _, batched in columns), primitive.multiple_results

        def one(*inputs: Any) -> list:
            out = primitive.bind(*inputs, **primitive.get_bind_params(params))
            return list(out) if several else [out]

        if len(nodes) == 1:
            return lambda arrays: one(*(column(arrays) for column, _ in columns))
        return lambda arrays: jax.vmap(one, in_axes=axes)(*(column(arrays) for column, _ in columns))

    def _windows(self, nodes: list[_Node]) -> Callable[[list], list]:
        starts = np.array([node.params["start_indices"] for node in nodes], np.int32)
        sizes, source = self.graph.avals[nodes[0].outputs[0]].shape, nodes[0].inputs[0]
        moving = tuple(int(k) for k in np.flatnonzero(starts.any(0)))
        if len(moving) == 1 and sizes[moving[0]] == 1:  # rows
            axis, rows = moving[0], starts[:, moving[0]]
            order = [axis, *(k for k in range(len(sizes)) if k != axis)]
            shape = self.graph.avals[source].shape
            ends = [shape[k] if k == axis else n for k, n in enumerate(sizes)]
            part = lambda x: x if list(shape) == ends else lax.slice(x, [0] * len(ends), ends)
            return lambda arrays: [_taken(part(self._one(arrays, source)).transpose(order), rows).reshape(len(rows), *sizes)]
        numbers = lax.GatherDimensionNumbers(tuple(range(1, len(sizes) + 1)), (), moving)
        indices = starts[:, list(moving)]
        mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
        return lambda arrays: [lax.gather(self._one(arrays, source), indices, numbers, sizes, mode=mode)]

    def _sum(self, nodes: list[_Node]) -> Callable[[list], list]:
        """Terms that are the same for all first, then those of each batch, in their order."""
        aval, count = self.graph.avals[nodes[0].outputs[0]], len(nodes)
        of: dict[tuple, list[list[int]]] = defaultdict(lambda: [[] for _ in nodes])
        for k, node in enumerate(nodes):
            for v, sign in zip(node.inputs, node.params, strict=True):
                of[self._class(v, sign)][k].append(v)
        parts = [(sign, self._single(parts_of) if not batch else self._added(parts_of, aval)) for (batch, _, sign), parts_of in sorted(of.items())]

        def total(arrays: list) -> list:
            out = None
            for sign, part in parts:
                x = part(arrays)
                out = (x if sign > 0 else -x) if out is None else out + x if sign > 0 else out - x
            shape = (count, *aval.shape) if count > 1 else aval.shape
            out = jnp.zeros(shape, aval.dtype) if out is None else out
            return [jnp.broadcast_to(out if count == 1 or out.ndim == len(shape) else out[None], shape)]

        return total

    def _single(self, parts: list[list[int]]) -> Callable[[list], Any]:
        """One value, as often as it is a term of each node."""
        often = np.array([len(values) for values in parts])
        value = parts[int(np.argmax(often))][0]
        if (often == 1).all():
            return lambda arrays: self._one(arrays, value)

        def repeated(arrays: list) -> Any:
            x = jnp.asarray(self._one(arrays, value))
            factors = often.astype(x.dtype)
            return x * (factors.reshape(-1, *(1,) * x.ndim) if len(parts) > 1 else factors[0])

        return repeated

    def _added(self, parts: list[list[int]], aval: Any) -> Callable[[list], Any]:
        """Rows of one batch, summed for each node."""
        rows = [np.array([self.places[v][1] for v in values], int) for values in parts]
        batch = self.places[next(v for values in parts for v in values)][0]
        flat, lengths = np.concatenate(rows), [len(row) for row in rows]
        if len(parts) == 1:
            return lambda arrays: jnp.sum(_taken(arrays[batch], flat), 0, dtype=aval.dtype)
        if min(lengths) == max(lengths):
            return lambda arrays: jnp.sum(_taken(arrays[batch], flat).reshape(len(parts), lengths[0], *aval.shape), 1, dtype=aval.dtype)
        nodes = np.repeat(np.arange(len(parts)), lengths)[:, None]
        zeros = lambda: jnp.zeros((len(parts), *aval.shape), aval.dtype)
        numbers = lax.ScatterDimensionNumbers(tuple(range(1, len(aval.shape) + 1)), (0,), (0,))
        return lambda arrays: lax.scatter_add(zeros(), nodes.astype(np.int32), _taken(arrays[batch], flat), numbers)

    def _place(self, node: _Node) -> Callable[[list], list]:
        """Σ of arrays, each at its place among zeros."""
        aval, rank = self.graph.avals[node.outputs[0]], node.params.shape[1]
        numbers = lax.ScatterDimensionNumbers(tuple(range(1, rank + 1)), (), tuple(range(rank)))
        stacked = self._spread(node.inputs)
        return lambda arrays: [lax.scatter_add(jnp.zeros(aval.shape, aval.dtype), node.params, stacked(arrays), numbers)]

    def _scatter(self, node: _Node) -> Callable[[list], list]:
        count, old = (len(node.inputs) - 1) // 2, node.params["dimension_numbers"]
        base, indices, updates = node.inputs[0], self._spread(node.inputs[1 : count + 1]), self._spread(node.inputs[count + 1 :])
        numbers = lax.ScatterDimensionNumbers(
            tuple(k + 1 for k in old.update_window_dims), old.inserted_window_dims, old.scatter_dims_to_operand_dims
        )
        mode = node.params["mode"]
        return lambda arrays: [lax.scatter_add(self._one(arrays, base), indices(arrays), updates(arrays), numbers, mode=mode)]

    def _spread(self, values: Sequence[int]) -> Callable[[list], Any]:
        """Values along a new first axis, also where they are one."""
        stacked, batched = self._stack(values)
        return stacked if batched else lambda arrays: jnp.broadcast_to(stacked(arrays), (len(values), *self.graph.avals[values[0]].shape))

    def _joined(self, node: _Node) -> Callable[[list], list]:
        """Arrays of one shape, one after the other along an axis."""
        shapes = {self.graph.avals[v].shape for v in node.inputs}
        if len(shapes) > 1:
            return self._equations([node])
        (shape,), axis, count = shapes, node.params["dimension"], len(node.inputs)
        stacked = self._spread(node.inputs)
        new = [n * count if k == axis else n for k, n in enumerate(shape)]
        return lambda arrays: [jnp.moveaxis(stacked(arrays), 0, axis).reshape(new)]


def _taken(x: Any, rows: np.ndarray) -> Any:
    """x[rows], for rows that are known."""
    if np.array_equal(rows, np.arange(len(x))):
        return x
    if np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return lax.slice_in_dim(x, int(rows[0]), int(rows[0]) + len(rows))
    numbers = lax.GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    return lax.gather(x, rows[:, None].astype(np.int32), numbers, (1, *x.shape[1:]), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)
