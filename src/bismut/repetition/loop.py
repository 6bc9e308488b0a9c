"""A loop over items as one equation of a jaxpr.

    each    y_k = f(x_k; c),  s = Σ_k g(x_k; c)                               for items k = 0 ... K − 1
    pairs   s = Σ g(x_i, x_j, d_p; c),  z_i += a(...),  z_j += b(...),  y_p = f(...)      for pairs p = (i, j) of K bodies

Written with `vmap`, work per body is arrays over bodies; written so, it is one equation that holds the jaxpr of a single item, whose length does not
know K. A compiler may make a loop of it; everyone else sees the `vmap` it stands for (`expanded`).

Operands are read and results are written alike, which is why the derivative of a loop is a loop and its transpose is another one:

    operands   shared by all | of bodies (K, ...), read at i and at j   | of items (n, ...), read at p
    results    summed over all | of bodies (K, ...), summed at i and at j | of items (n, ...), written at p

In the inner jaxpr the arguments come as (shared, at i, at j, of the item), the results as (total, for i, for j, of the item). `each` has no bodies.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from bismut.host import evaluate
from bismut.programs.jaxprs import hoist
from bismut.programs.layout import Bonds, Layout, Reach, split_at
from bismut.repetition.tournament import each_pair

each_p, pairs_p = Primitive("each"), Primitive("pairs")


Operands = Sequence[Sequence]  # shared, of bodies, of items


def items(primitive: Primitive, layout: Layout) -> int:
    """How many items the loop has."""
    if primitive is each_p:
        return layout.length
    return layout.length * (layout.length - 1) // 2 if layout.bonds is None else len(layout.bonds.i)


def loop(
    primitive: Primitive,
    function: Callable,
    length: int,
    bonds: Bonds | None,
    operands: Operands,
    linear: Sequence[bool],
    reach: Reach | None = None,
) -> Any:
    """Bind the loop of function(shared, at i, at j, of the item) ↦ (total, for i, for j, of the item), flat lists all.

    `linear` marks the operands in which it is linear; results come as (summed, of bodies, of items).

    Traced values that the function closes over become shared operands; known ones stay in the inner jaxpr.
    """
    shared, bodies, own = operands
    seen = lambda operand, whole: jax.ShapeDtypeStruct(jnp.shape(operand)[0 if whole else 1 :], jnp.result_type(operand))
    kinds = ([seen(x, True) for x in shared], [seen(x, False) for x in bodies], [seen(x, False) for x in bodies], [seen(x, False) for x in own])
    counts: list[int] = []

    def flat(*arguments):
        returned = function(*split_at(arguments, len(shared), len(bodies), len(bodies)))
        counts[:] = map(len, returned)
        return [value for part in returned for value in part]

    closed = jax.make_jaxpr(flat)(*(kind for part in kinds for kind in part))
    closed, hoisted = hoist(closed)
    layout = Layout(length, len(hoisted) + len(shared), len(bodies), counts[0], counts[1], bonds, reach)
    marks = tuple(len(hoisted) + i for i, mark in enumerate(linear) if mark)
    # What an item only hands on does not go through the loop.
    items = dict(zip(layout.arguments(closed.jaxpr.invars)[3], own, strict=True))
    returned = zip(closed.jaxpr.outvars, _own(layout, closed), strict=True)
    passed = [items.get(v) if mark and not isinstance(v, Literal) else None for v, mark in returned]
    if any(x is not None for x in passed):
        work = [v for v, x in zip(closed.jaxpr.outvars, passed, strict=True) if x is None]
        closed = ClosedJaxpr(closed.jaxpr.replace(outvars=work, debug_info=closed.jaxpr.debug_info.with_unknown_names()), closed.consts)
    bound = iter(primitive.bind(*hoisted, *shared, *bodies, *own, jaxpr=closed, layout=layout, linear=marks) if closed.jaxpr.outvars else ())
    sums = layout.totals + layout.sums
    return layout.results([*(next(bound) for _ in range(sums)), *(next(bound) if x is None else x for x in passed[sums + layout.sums :])])


def _own(layout: Layout, closed: ClosedJaxpr) -> list[bool]:
    """Which results of the inner jaxpr belong to the item."""
    first = layout.totals + 2 * layout.sums
    return [i >= first for i in range(len(closed.jaxpr.outvars))]


def expanded(primitive: Primitive, *operands, jaxpr: ClosedJaxpr, layout: Layout, linear=()) -> list:
    """The loop as `vmap` over its items."""
    del linear
    shared, bodies, own = layout.operands(operands)
    at_i, at_j = _read(bodies, layout)
    axes = (*(None for _ in shared), *(0 for _ in (*at_i, *at_j, *own)))
    out = jax.vmap(jaxpr_as_fun(jaxpr), axes, axis_size=items(primitive, layout))(*shared, *at_i, *at_j, *own)
    totals, for_i, for_j, own = layout.returns(out)
    return [*(jnp.sum(total, 0) for total in totals), *_accumulate(for_i, for_j, bodies, layout), *own]


def _here(primitive: Primitive, *operands, jaxpr: ClosedJaxpr, layout: Layout, linear=()) -> list:
    """The same outside of any program: each operation of it would compile one."""
    return evaluate(partial(expanded, primitive, jaxpr=jaxpr, layout=layout, linear=linear), *operands)


def _read(bodies: Sequence, layout: Layout) -> tuple[list, list]:
    if layout.bonds is not None:
        return [x[layout.bonds.i] for x in bodies], [x[layout.bonds.j] for x in bodies]
    return each_pair(list(bodies)) if bodies else ([], [])


def _accumulate(for_i: Sequence, for_j: Sequence, bodies: Sequence, layout: Layout) -> list:
    """The transpose of reading."""
    shapes = [jax.ShapeDtypeStruct((layout.length, *part.shape[1:]), part.dtype) for part in for_i]
    if not shapes:
        return []
    return list(jax.linear_transpose(lambda *x: _read(x, layout), *shapes)((list(for_i), list(for_j))))


def _abstract(primitive: Primitive, *operands, jaxpr: ClosedJaxpr, layout: Layout, linear):
    totals, sums, _, own = layout.returns(jaxpr.out_avals)
    wide = lambda aval, n: aval.update(shape=(n, *aval.shape))
    return [*totals, *(wide(a, layout.length) for a in sums), *(wide(a, items(primitive, layout)) for a in own)]


def _jvp(primitive: Primitive, primals, tangents, *, jaxpr: ClosedJaxpr, layout: Layout, linear):
    """A loop whose items are the derivatives of the items."""
    out = primitive.bind(*primals, jaxpr=jaxpr, layout=layout, linear=linear)
    moving = [type(t) is not ad.Zero for t in tangents]
    smooth = [jnp.issubdtype(aval.dtype, jnp.inexact) for aval in jaxpr.out_avals]
    groups = layout.operands(list(zip(primals, tangents, moving, strict=True)))
    counts = [sum(mark for *_, mark in group) for group in groups]

    def pushed(*parts):
        """Derivatives of one item, from its values and the rates of those that move."""
        seen = [split_at(part, len(part) - n)[:2] for part, n in zip(parts, (counts[0], counts[1], counts[1], counts[2]), strict=True)]
        values = [value for known, _ in seen for value in known]
        rates = [rate for _, given in seen for rate in given]
        marks = layout.spread(moving)

        def function(*moved):
            given = iter(moved)
            results = jaxpr_as_fun(jaxpr)(*(next(given) if mark else value for value, mark in zip(values, marks, strict=True)))
            return [result for result, keep in zip(results, smooth, strict=True) if keep]

        changes = iter(jax.jvp(function, [v for v, mark in zip(values, marks, strict=True) if mark], rates)[1])
        return layout_kept([next(changes) if keep else None for keep in smooth])

    layout_kept = lambda flat: tuple([x for x in part if x is not None] for part in layout.returns(flat))
    operands = [[*(p for p, *_ in group), *(t for _, t, mark in group if mark)] for group in groups]
    marks = [mark for group in groups for mark in (*(False for _ in group), *(True for *_, m in group if m))]
    rates = iter([x for part in loop(primitive, pushed, layout.length, layout.bonds, operands, marks, layout.reach) for x in part])
    zero = lambda value: ad.Zero(jax.typeof(value).to_tangent_aval())
    return out, [next(rates) if keep else zero(value) for value, keep in zip(out, layout.joined(smooth), strict=True)]


def _transpose(primitive: Primitive, cotangents, *operands, jaxpr: ClosedJaxpr, layout: Layout, linear):
    """Where the loop reads, its transpose sums, and the other way round."""
    sought = [ad.is_undefined_primal(x) for x in operands]
    groups = layout.operands(list(zip(operands, sought, strict=True)))
    known = [[x for x, mark in group if not mark] for group in groups]
    felt = [[ct for ct in part if type(ct) is not ad.Zero] for part in layout.results(cotangents)]
    there = [type(ct) is not ad.Zero for ct in cotangents]
    totals, sums, own = layout.results(there)
    returned = [*totals, *sums, *sums, *own]  # both sides of a pair feel what pulls at a body
    marks = layout.spread(sought)
    unknown = [aval for aval, mark in zip(jaxpr.in_avals, marks, strict=True) if mark]

    def pulled(*parts):
        counts = (len(felt[0]), len(felt[1]), len(felt[1]), len(felt[2]))
        seen = [split_at(part, len(part) - n)[:2] for part, n in zip(parts, counts, strict=True)]
        values, pulls = ([value for part in seen for value in part[side]] for side in (0, 1))

        def function(*moved):
            given, held = iter(moved), iter(values)
            results = jaxpr_as_fun(jaxpr)(*(next(given) if mark else next(held) for mark in marks))
            return [result for result, keep in zip(results, returned, strict=True) if keep]

        found = iter(jax.linear_transpose(function, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in unknown))(pulls))
        return layout.arguments([next(found) if mark else None for mark in marks])

    kept = lambda *parts: tuple([x for x in part if x is not None] for part in pulled(*parts))
    given = [[*values, *pulls] for values, pulls in zip(known, felt, strict=True)]
    new = [mark for values, pulls in zip(known, felt, strict=True) for mark in (*(False for _ in values), *(True for _ in pulls))]
    reach = layout.reach
    if reach is not None:  # positions are known wherever distances decide
        before = [mark for _, mark in groups[1][: reach.positions + 1]]
        reach = None if before[-1] else reach._replace(positions=before.count(False) - 1)
    found = iter([x for part in loop(primitive, kept, layout.length, layout.bonds, given, new, reach) for x in part])
    return [next(found) if mark else None for mark in sought]


def _batch(primitive: Primitive, operands, axes, *, jaxpr: ClosedJaxpr, layout: Layout, linear):
    """A loop whose items are batches."""
    batched = [axis is not None for axis in axes]
    shared, bodies, own = layout.operands(list(zip(operands, axes, batched, strict=True)))
    moved = lambda group, to: [jnp.moveaxis(x, axis, to) if mark else x for x, axis, mark in group]
    where = [0 if mark else None for mark in layout.spread(batched)]

    def function(*parts):
        return layout.returns(jax.vmap(jaxpr_as_fun(jaxpr), tuple(where))(*(value for part in parts for value in part)))

    given = moved(shared, 0), moved(bodies, 1), moved(own, 1)
    marks = [i in linear for i in range(len(operands))]
    reach = None if layout.reach is None or bodies[layout.reach.positions][2] else layout.reach  # of a batch some may be near and others not
    totals, sums, own = loop(primitive, function, layout.length, layout.bonds, given, marks, reach)
    return [*totals, *sums, *own], [*(0 for _ in totals), *(1 for _ in (*sums, *own))]


for _primitive in (each_p, pairs_p):
    _primitive.multiple_results = True
    _primitive.def_impl(partial(_here, _primitive))
    _primitive.to_lojax = partial(_here, _primitive)  # where an item holds what jax, from 0.11 on, lowers before it compiles
    _primitive.def_abstract_eval(partial(_abstract, _primitive))
    mlir.register_lowering(_primitive, mlir.lower_fun(partial(expanded, _primitive), multiple_results=True))
    ad.primitive_jvps[_primitive] = partial(_jvp, _primitive)
    ad.primitive_transposes[_primitive] = partial(_transpose, _primitive)
    batching.primitive_batchers[_primitive] = partial(_batch, _primitive)
