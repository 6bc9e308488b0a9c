"""Whether numbers are known: under jit, vmap and grad they are not, and what can only be judged by numbers is left to those who ran it before."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax
from jax.core import Tracer

from bismut.programs import Memory, key

Answer = TypeVar("Answer")


def traced(*trees) -> bool:
    """Whether any array of the trees is one that JAX traces."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


_ANSWERS = Memory(256)


def without_numbers(question: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    """A question about the structure of something, asked under a trace: zeros and origins that stand for numbers are then never computed, which by
    itself would compile a program for each of them. It is asked once of all that are the same: the answer is what their program is made from."""

    @wraps(question)
    def ask(self: Any) -> Answer:
        def found() -> Answer:
            answers: list[Answer] = []
            jax.eval_shape(lambda: answers.append(question(self)))
            return answers[0]

        return _ANSWERS.get((question, key(self)), found)

    return ask
