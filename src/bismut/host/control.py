"""Calls, loops and branches: (run, params, inputs) ↦ outputs, where `run` carries out the programs they hold."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bismut.programs import CALL, Program

Run = Callable[[Program, list], list]


def _call(run: Run, params: Any, inputs: list) -> list:
    return run(params["jaxpr"], inputs)


def _while(run: Run, params: Any, inputs: list) -> list:
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    of_cond, of_body, carry = inputs[:first], inputs[first:second], inputs[second:]
    while np.any(on := np.asarray(run(params["cond_jaxpr"], [*of_cond, *carry])[0])):
        new = run(params["body_jaxpr"], [*of_body, *carry])
        # Of many at once, those that have finished keep what they had.
        at = lambda x, on=on: on.reshape(*on.shape, *[1] * (np.ndim(x) - on.ndim))
        carry = [np.where(at(x), x, old) for x, old in zip(new, carry, strict=True)] if on.ndim else new
    return carry


def _scan(run: Run, params: Any, inputs: list) -> list:
    first, second = params["num_consts"], params["num_consts"] + params["num_carry"]
    shared, carry, rows = inputs[:first], inputs[first:second], inputs[second:]
    order = range(params["length"])
    kept: dict[int, list] = {}
    for k in reversed(order) if params["reverse"] else order:
        out = run(params["jaxpr"], [*shared, *carry, *(row[k] for row in rows)])
        carry, kept[k] = out[: len(carry)], out[len(carry) :]
    shapes = params["jaxpr"].out_avals[len(carry) :]
    empty = [np.zeros((0, *aval.shape), aval.dtype) for aval in shapes]
    return [*carry, *(np.stack([kept[k][i] for k in order]) if order else none for i, none in enumerate(empty))]


def _cond(run: Run, params: Any, inputs: list) -> list:
    which, branches = int(inputs[0]), params["branches"]
    return run(branches[min(max(which, 0), len(branches) - 1)], inputs[1:])


RULES: dict[str, Callable] = {CALL: _call, "while": _while, "scan": _scan, "cond": _cond}
