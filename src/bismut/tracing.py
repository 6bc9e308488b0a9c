"""Whether numbers are known: under jit, vmap and grad they are not, and what can only be judged by numbers is left to those who ran it before."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state

from bismut.compile_cache import Memory, key

Answer = TypeVar("Answer")


def traced(*trees) -> bool:
    """Whether any array of the trees is one that JAX traces."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def _state_of_a_new_thread() -> Any:
    """The state in which nothing is traced; this thread may be tracing while bismut is imported."""
    states: list[Any] = []
    thread = threading.Thread(target=lambda: states.append(get_opaque_trace_state()))
    thread.start()
    thread.join()
    return states[0]


_PLAIN = _state_of_a_new_thread()


def nothing_traced() -> bool:
    """Whether no transformation is under way here: every array that is made is then one with numbers."""
    return get_opaque_trace_state() == _PLAIN


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
