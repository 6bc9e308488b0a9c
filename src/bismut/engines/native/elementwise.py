"""Operations entry by entry, and calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from bismut.engines.native.field import Array, Field, Formula, array_level, entry, lanes
from bismut.engines.native.folding import ELEMENTWISE, SETTINGS
from bismut.engines.native.frame import IN_LOOPS, Scope
from bismut.engines.native.lane import array_of
from bismut.engines.native.walk import Refused, rule, run
from bismut.programs import CALL


def apply(scope: Scope, name: str, inputs: list[Array], settings: dict, dtype: Any) -> Array:
    """One operation on arrays; an axis of length one goes with every entry."""
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    if any(isinstance(x, Field) for x in inputs):
        placed = lambda x, index: [i if n > 1 else 0 for i, n in zip(index, x.shape, strict=True)] if x.shape else ()

        def one(inner: Scope, index) -> Any:
            return inner.lane(name, [entry(inner, x, placed(x, index)) for x in inputs], settings)

        return Formula(shape, dtype, min(map(array_level, inputs)), one)
    columns = [x.flat if x.shape == shape else np.broadcast_to(x, shape).flat for x in inputs]
    return array_of([scope.lane(name, list(lanes), settings) for lanes in zip(*columns, strict=True)], shape)


@rule(*ELEMENTWISE)
def _(scope, equation, inputs):
    name = equation.primitive.name
    settings = {key: equation.params[key] for key in SETTINGS.get(name, ())}
    return [apply(scope, name, inputs, settings, equation.outvars[0].aval.dtype)]


@rule("bitcast_convert_type")
def _(scope, equation, inputs):
    x, aval = inputs[0], equation.outvars[0].aval
    old, new = (np.dtype(v.aval.dtype) for v in (equation.invars[0], equation.outvars[0]))
    if old.itemsize == new.itemsize:
        return [apply(scope, "bitcast_convert_type", inputs, {"new_dtype": new}, new)]
    if aval.size > scope.small:
        raise Refused("bits of a large array as numbers of another width")
    whole = lanes(scope, x)
    long, short = (np.dtype(f"u{max(old.itemsize, new.itemsize)}"), np.dtype(f"u{min(old.itemsize, new.itemsize)}"))
    to = lambda name, lane, kind: scope.lane(name, [lane], {"new_dtype": kind})
    moved = lambda name, lane, k: scope.lane(name, [lane, long.type(8 * short.itemsize * k)]) if k else lane
    count = long.itemsize // short.itemsize
    out = np.empty(aval.shape, object)
    for index in np.ndindex(*(aval.shape if new.itemsize > old.itemsize else aval.shape[:-1])):
        if new.itemsize > old.itemsize:  # several short ones, the lowest bits first
            total: Any = long.type(0)
            for k in range(count):
                piece = to("convert_element_type", to("bitcast_convert_type", whole[(*index, k)], short), long)
                total = scope.lane("or", [total, moved("shift_left", piece, k)])
            out[index] = to("bitcast_convert_type", total, new)
        else:
            bits = to("bitcast_convert_type", whole[index], long)
            for k in range(count):
                piece = to("convert_element_type", moved("shift_right_logical", bits, k), short)
                out[(*index, k)] = to("bitcast_convert_type", piece, new)
    return [out]


@rule("optimization_barrier")
def _(scope, equation, inputs):
    return inputs


@rule(CALL)
def _(scope, equation, inputs):
    if equation.params.get("loops"):  # over memory: written out it would be thousands of operations
        scope = Scope(scope.frame, scope.code, IN_LOOPS, scope, scope.hoists, scope.wide)
    return run(scope, equation.params["jaxpr"], inputs)
