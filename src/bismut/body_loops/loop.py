"""A loop over items as one equation of a jaxpr.

    each    y_k = f(x_k; c),  s = Σ_k g(x_k; c)                               for items k = 0 ... K − 1
    pairs   s = Σ g(x_i, x_j, d_p; c),  z_i += a(...),  z_j += b(...),  y_p = f(...)      for pairs p = (i, j) of K bodies

With `vmap`, work per body is arrays over bodies; here it is one equation that holds the jaxpr of a single item, whose length does not depend on K.
The native engine compiles it to a loop; XLA gets the equivalent `vmap` (`expanded`).

Operands are read and results are written symmetrically, which is why the derivative of a loop is a loop and its transpose is another one:

    operands   shared by all | of bodies (K, ...), read at i and at j   | of items (n, ...), read at p
    results    summed over all | of bodies (K, ...), summed at i and at j | of items (n, ...), written at p

In the inner jaxpr the arguments come as (shared, at i, at j, of the item), the results as (total, for i, for j, of the item). `each` has no bodies.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jax.interpreters.partial_eval import dce_jaxpr, dce_rules

from bismut.body_loops.round_robin import each_pair
from bismut.programs.evaluation import evaluate
from bismut.programs.jaxprs import hoist
from bismut.programs.layout import Bonds, LoopLayout, Reach, split_at

each_p, pairs_p = Primitive("each"), Primitive("pairs")

Operands = Sequence[Sequence]  # shared, of bodies, of items


def items(primitive: Primitive, layout: LoopLayout) -> int:
    """How many items the loop has."""
    return layout.length if primitive is each_p else layout.pairs


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
    abstract = lambda operands, first: [jax.ShapeDtypeStruct(jnp.shape(x)[first:], jnp.result_type(x)) for x in operands]
    arguments = [*abstract(shared, 0), *abstract(bodies, 1), *abstract(bodies, 1), *abstract(own, 1)]
    counts: list[int] = []

    def flat(*arguments):
        returned = function(*split_at(arguments, len(shared), len(bodies), len(bodies)))
        counts[:] = map(len, returned)
        return [value for part in returned for value in part]

    closed, hoisted = hoist(jax.make_jaxpr(flat)(*arguments))
    layout = LoopLayout(length, len(hoisted) + len(shared), len(bodies), counts[0], counts[1], bonds, reach)
    marks = tuple(len(hoisted) + i for i, mark in enumerate(linear) if mark)
    # Results that are unchanged operands of the item bypass the loop.
    items = dict(zip(layout.arguments(closed.jaxpr.invars)[3], own, strict=True))
    first_own = layout.totals + 2 * layout.sums
    passed = [items.get(v) if i >= first_own and not isinstance(v, Literal) else None for i, v in enumerate(closed.jaxpr.outvars)]
    if any(x is not None for x in passed):
        work = [v for v, x in zip(closed.jaxpr.outvars, passed, strict=True) if x is None]
        closed = ClosedJaxpr(closed.jaxpr.replace(outvars=work, debug_info=closed.jaxpr.debug_info.with_unknown_names()), closed.consts)
    bound = iter(primitive.bind(*hoisted, *shared, *bodies, *own, jaxpr=closed, layout=layout, linear=marks) if closed.jaxpr.outvars else ())
    sums = layout.totals + layout.sums
    return layout.results([*(next(bound) for _ in range(sums)), *(next(bound) if x is None else x for x in passed[first_own:])])


def expanded(primitive: Primitive, *operands, jaxpr: ClosedJaxpr, layout: LoopLayout, linear=()) -> list:
    """The loop as `vmap` over its items."""
    del linear
    shared, bodies, own = layout.operands(operands)
    at_i, at_j = _read(bodies, layout)
    axes = (*(None for _ in shared), *(0 for _ in (*at_i, *at_j, *own)))
    out = jax.vmap(jaxpr_as_fun(jaxpr), axes, axis_size=items(primitive, layout))(*shared, *at_i, *at_j, *own)
    totals, for_i, for_j, own = layout.returns(out)
    return [*(jnp.sum(total, 0) for total in totals), *_accumulate(for_i, for_j, bodies, layout), *own]


def _eager(primitive: Primitive, *operands, jaxpr: ClosedJaxpr, layout: LoopLayout, linear=()) -> list:
    """The same outside of any program, in NumPy: JAX would compile each operation."""
    return evaluate(partial(expanded, primitive, jaxpr=jaxpr, layout=layout, linear=linear), *operands)


def _read(bodies: Sequence, layout: LoopLayout) -> tuple[list, list]:
    if layout.bonds is not None:
        return [x[layout.bonds.i] for x in bodies], [x[layout.bonds.j] for x in bodies]
    return each_pair(list(bodies)) if bodies else ([], [])


def _accumulate(for_i: Sequence, for_j: Sequence, bodies: Sequence, layout: LoopLayout) -> list:
    """The transpose of reading."""
    shapes = [jax.ShapeDtypeStruct((layout.length, *part.shape[1:]), part.dtype) for part in for_i]
    if not shapes:
        return []
    return list(jax.linear_transpose(lambda *x: _read(x, layout), *shapes)((list(for_i), list(for_j))))


def _abstract(primitive: Primitive, *operands, jaxpr: ClosedJaxpr, layout: LoopLayout, linear):
    totals, sums, _, own = layout.returns(jaxpr.out_avals)
    wide = lambda aval, n: aval.update(shape=(n, *aval.shape))
    return [*totals, *(wide(a, layout.length) for a in sums), *(wide(a, items(primitive, layout)) for a in own)]


def _jvp(primitive: Primitive, primals, tangents, *, jaxpr: ClosedJaxpr, layout: LoopLayout, linear):
    """A loop whose items are the derivatives of the items."""
    out = primitive.bind(*primals, jaxpr=jaxpr, layout=layout, linear=linear)
    moving = [type(t) is not ad.Zero for t in tangents]
    smooth = [jnp.issubdtype(aval.dtype, jnp.inexact) for aval in jaxpr.out_avals]
    groups = layout.operands(list(zip(primals, tangents, moving, strict=True)))
    counts = [sum(mark for *_, mark in group) for group in groups]

    def pushed(*parts):
        """Derivatives of one item, from its values and the tangents of those that move."""
        values, rates = _unpaired(parts, (counts[0], counts[1], counts[1], counts[2]))
        marks = layout.spread(moving)

        def function(*moved):
            variables = iter(moved)
            results = jaxpr_as_fun(jaxpr)(*(next(variables) if mark else value for value, mark in zip(values, marks, strict=True)))
            return list(compress(results, smooth))

        changes = iter(jax.jvp(function, list(compress(values, marks)), rates)[1])
        return _present(layout.returns([next(changes) if differentiable else None for differentiable in smooth]))

    operands = [[*(p for p, *_ in group), *(t for _, t, mark in group if mark)] for group in groups]
    marks = [mark for group in groups for mark in (*(False for _ in group), *(True for *_, m in group if m))]
    rates = iter([x for part in loop(primitive, pushed, layout.length, layout.bonds, operands, marks, layout.reach) for x in part])
    zero = lambda value: ad.Zero(jax.typeof(value).to_tangent_aval())
    return out, [next(rates) if differentiable else zero(value) for value, differentiable in zip(out, layout.joined(smooth), strict=True)]


def _unpaired(parts: Sequence[Sequence], counts: Sequence[int]) -> tuple[list, list]:
    """Of groups of arguments, each followed by so many tangents or cotangents: all arguments, and all that follow them."""
    halves = [split_at(part, len(part) - n)[:2] for part, n in zip(parts, counts, strict=True)]
    return [x for first, _ in halves for x in first], [x for _, last in halves for x in last]


def _present(parts: Sequence[Sequence]) -> tuple[list, ...]:
    return tuple([x for x in part if x is not None] for part in parts)


def _transpose(primitive: Primitive, cotangents, *operands, jaxpr: ClosedJaxpr, layout: LoopLayout, linear):
    """Where the loop reads, its transpose sums, and the other way round."""
    unknowns = [ad.is_undefined_primal(x) for x in operands]
    groups = layout.operands(list(zip(operands, unknowns, strict=True)))
    known = [[x for x, mark in group if not mark] for group in groups]
    pulls = [[ct for ct in part if type(ct) is not ad.Zero] for part in layout.results(cotangents)]
    totals, sums, own = layout.results([type(ct) is not ad.Zero for ct in cotangents])
    returned = [*totals, *sums, *sums, *own]  # the cotangent of a body enters on both sides of a pair
    marks = layout.spread(unknowns)
    unknown = [aval for aval, mark in zip(jaxpr.in_avals, marks, strict=True) if mark]

    def pulled(*parts):
        values, given = _unpaired(parts, (len(pulls[0]), len(pulls[1]), len(pulls[1]), len(pulls[2])))

        def function(*moved):
            variables, constants = iter(moved), iter(values)
            return list(compress(jaxpr_as_fun(jaxpr)(*(next(variables) if mark else next(constants) for mark in marks)), returned))

        transposed = iter(jax.linear_transpose(function, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in unknown))(given))
        return _present(layout.arguments([next(transposed) if mark else None for mark in marks]))

    arguments = [[*values, *given] for values, given in zip(known, pulls, strict=True)]
    linear_in = [mark for values, given in zip(known, pulls, strict=True) for mark in (*(False for _ in values), *(True for _ in given))]
    reach = layout.reach
    if reach is not None:  # positions are known wherever distances decide
        before = [mark for _, mark in groups[1][: reach.positions + 1]]
        reach = None if before[-1] else reach._replace(positions=before.count(False) - 1)
    results = iter([x for part in loop(primitive, pulled, layout.length, layout.bonds, arguments, linear_in, reach) for x in part])
    return [next(results) if mark else None for mark in unknowns]


def _batch(primitive: Primitive, operands, axes, *, jaxpr: ClosedJaxpr, layout: LoopLayout, linear):
    """A loop whose items are batches."""
    batched = [axis is not None for axis in axes]
    shared, bodies, own = layout.operands(list(zip(operands, axes, batched, strict=True)))
    moved = lambda group, to: [jnp.moveaxis(x, axis, to) if mark else x for x, axis, mark in group]
    where = [0 if mark else None for mark in layout.spread(batched)]

    def function(*parts):
        return layout.returns(jax.vmap(jaxpr_as_fun(jaxpr), tuple(where))(*(value for part in parts for value in part)))

    arguments = moved(shared, 0), moved(bodies, 1), moved(own, 1)
    marks = [i in linear for i in range(len(operands))]
    reach = None if layout.reach is None or bodies[layout.reach.positions][2] else layout.reach  # members of a batch differ in which pairs are near
    totals, sums, own = loop(primitive, function, layout.length, layout.bonds, arguments, marks, reach)
    return [*totals, *sums, *own], [*(0 for _ in totals), *(1 for _ in (*sums, *own))]


def pruned(used: list[bool], *rule_arguments: Any):
    """The rule of `dce_jaxpr`: which operands are read, and the loop with the used results alone.

    JAX drops equations none of whose results are used. Of a loop it may drop single results, and with them operands and work of every item: of the
    derivative of an energy the energy, of a solve the residual.
    """
    equation = rule_arguments[-1]  # jax 0.12 passes before it which inputs are alive, for the sake of effects; a loop has none
    if not any(used):
        return [False] * len(equation.invars), None
    layout, closed = equation.params["layout"], equation.params["jaxpr"]
    inside = layout.wanted(used)
    reads, new = layout.pruned(used, dce_jaxpr(closed.jaxpr, inside)[1])
    slim, _ = dce_jaxpr(closed.jaxpr, inside, instantiate=layout.spread(reads))
    linear = tuple(sum(reads[:i]) for i in equation.params["linear"] if reads[i])
    params = {"jaxpr": ClosedJaxpr(slim, closed.consts), "layout": new, "linear": linear}
    return reads, equation.replace(invars=list(compress(equation.invars, reads)), outvars=list(compress(equation.outvars, used)), params=params)


for _primitive in (each_p, pairs_p):
    _primitive.multiple_results = True
    _primitive.def_impl(partial(_eager, _primitive))
    _primitive.to_lojax = partial(_eager, _primitive)  # where an item holds what jax, from 0.11 on, lowers before it compiles
    _primitive.def_abstract_eval(partial(_abstract, _primitive))
    mlir.register_lowering(_primitive, mlir.lower_fun(partial(expanded, _primitive), multiple_results=True))
    ad.primitive_jvps[_primitive] = partial(_jvp, _primitive)
    ad.primitive_transposes[_primitive] = partial(_transpose, _primitive)
    batching.primitive_batchers[_primitive] = partial(_batch, _primitive)
    dce_rules[_primitive] = pruned
