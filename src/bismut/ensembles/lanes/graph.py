"""Lanes as a graph, and where it is cut into loops.

A compiler for CPUs turns every array that is kept into one loop over trajectories, and what two kept arrays have in common it computes in both
loops. (A loop has one output here; there is no fusion with several.) A step in which every new component depends on all old ones would be
computed once per component. So lanes are not computed as they are met: they form a graph of scalar operations, and once the whole step is known
some inner nodes are chosen to be kept as well, each in a loop `apart`.

    keep a node  ⟺  (loops that need it − 1) × (what it costs to compute again)  >  what it costs to store and load

Loops that need a node are counted from the results backwards; then nodes that turned out to be cheap, because what they are made of is kept
anyway, are released again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bismut.loops import apart

KEEPING = 8  # operations that storing a lane, loading it again and starting another loop are worth
_CAP = 1e6


def constant(lane) -> bool:
    return isinstance(lane, np.generic)


class Node:
    """One scalar component of one trajectory: an operation on other lanes, or a value that is there already."""

    __slots__ = ("cost", "inputs", "kept", "make", "needed", "value", "vector", "weight")

    def __init__(self, make: Callable | None, inputs: tuple, cost: float, vector: bool | None = None, value: Any = None):
        self.make, self.inputs, self.value = make, inputs, value
        self.vector = any(isinstance(lane, Node) and lane.vector for lane in inputs) if vector is None else vector
        # What all trajectories share is computed once, not once per trajectory.
        self.cost = cost if self.vector else 0.0
        self.weight, self.needed, self.kept = 0.0, 0, False

    @property
    def parents(self) -> list[Node]:
        return [lane for lane in self.inputs if isinstance(lane, Node)]


class Opaque(Node):
    """Something with several results that no loop can contain: a while loop, or a piece left to vmap. Its inputs have to be kept."""

    __slots__ = ()

    def parts(self, count: int, vector: bool = True) -> list[Node]:
        return [Node(lambda values, k=k: values[k], (self,), 0.0, vector) for k in range(count)]


def leaf(value) -> Node:
    """A lane that is known already: a vector over trajectories, or a number shared by all."""
    return Node(None, (), 0.0, vector=np.ndim(value) > 0, value=value)


def emit(lanes: Iterable) -> list:
    """The values of lanes, computed in loops that share what is worth sharing. Constants are left as they are."""
    lanes = list(lanes)
    roots = [lane for lane in lanes if isinstance(lane, Node)]
    order = _ordered(roots)
    _cut(order, roots)
    for node in order:
        if node.value is None and node.kept:
            node.value = _loop(node)
        elif node.value is None and not _computed(node):
            assert node.make is not None
            node.value = node.make(*map(_value, node.inputs))
    return [_value(lane) for lane in lanes]


def _value(lane):
    return lane.value if isinstance(lane, Node) else lane


def _loop(node: Node):
    """The value of a kept node, from other kept nodes and what is given."""
    body = _ordered([node], inside=True)
    given = list({id(p): p for member in body for p in member.parents if p.value is not None}.values())

    def compute(*values):
        known = {id(p): value for p, value in zip(given, values, strict=True)}
        for member in body:
            assert member.make is not None
            known[id(member)] = member.make(*(known[id(lane)] if isinstance(lane, Node) else lane for lane in member.inputs))
        return known[id(node)]

    values = [p.value for p in given]
    return apart(compute, *values) if node.needed else compute(*values)


def _ordered(roots: list[Node], inside: bool = False) -> list[Node]:
    """Every node that is needed, after the nodes it is made of; inside a loop only those that have no value yet."""
    order, done = [], set()
    waiting: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            order.append(node)
        elif id(node) not in done:
            done.add(id(node))
            waiting.append((node, True))
            waiting += [(p, False) for p in reversed(node.parents) if id(p) not in done and not (inside and p.value is not None)]
    return order


def _computed(node: Node) -> bool:
    """Whether the node is part of a loop: neither given, nor taken from something opaque, nor shared by all trajectories."""
    return node.value is None and node.vector and not isinstance(node, Opaque) and not any(isinstance(p, Opaque) for p in node.parents)


def _cut(order: list[Node], roots: list[Node]) -> None:
    final = {id(root) for root in roots}
    final |= {id(parent) for node in order if isinstance(node, Opaque) for parent in node.parents}
    for node in order:
        node.needed, node.kept = 0, False
        node.weight = min(node.cost + sum(p.weight for p in node.parents if _computed(p)), _CAP)
    loops = 0
    for node in reversed(order):
        if not _computed(node):
            continue
        again = node.needed.bit_count() - 1
        loop = node.needed
        if id(node) in final or again * node.weight > KEEPING:
            node.kept, loop = True, 1 << loops
            loops += 1
        for parent in node.parents:
            parent.needed |= loop
    for node in order:
        if not _computed(node):
            continue
        node.weight = min(node.cost + sum(p.weight for p in node.parents if _computed(p) and not p.kept), _CAP)
        # Released where computing it twice from kept lanes is cheaper than keeping it.
        if node.kept and id(node) not in final and node.weight <= KEEPING / 2:
            node.kept = False
