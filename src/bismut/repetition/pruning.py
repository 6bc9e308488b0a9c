"""A loop without the results that nobody reads.

JAX leaves out equations none of whose results are used (`dce_jaxpr`). Of a loop it may leave out single results, and with them operands and work of
every item: of the derivative of an energy the energy, of a solve the residual.
"""

from itertools import compress
from typing import Any

from jax.extend.core import ClosedJaxpr
from jax.interpreters.partial_eval import dce_jaxpr, dce_rules

from bismut.repetition.loop import each_p, pairs_p


def pruned(used: list[bool], *given: Any):
    """The rule of `dce_jaxpr`: which operands are read, and the loop with the used results alone."""
    equation = given[-1]  # jax 0.12 says before it which inputs are alive, for the sake of effects; a loop has none
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
    dce_rules[_primitive] = pruned
