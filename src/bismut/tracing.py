"""Whether numbers are known: under jit, vmap and grad they are not, and checks of values are skipped there."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state

from bismut.compile_cache import LRUCache, program_key

Answer = TypeVar("Answer")


def traced(*trees) -> bool:
    """Whether any array of the trees is one that JAX traces."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def _state_of_a_new_thread() -> Any:
    """The trace state in which nothing is traced; the importing thread may itself be tracing."""
    states: list[Any] = []
    thread = threading.Thread(target=lambda: states.append(get_opaque_trace_state()))
    thread.start()
    thread.join()
    return states[0]


_PLAIN = _state_of_a_new_thread()


def nothing_traced() -> bool:
    """Whether no transformation is active in this thread, so that every new array has numbers."""
    return get_opaque_trace_state() == _PLAIN


_ANSWERS = LRUCache(256)


def structural_query(question: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    """A method that asks about structure alone, evaluated under a trace: zeros and origins that stand for numbers are never computed, each of which
    would compile a program of its own. The answer is cached for all objects that are the same."""

    @wraps(question)
    def ask(self: Any) -> Answer:
        def traced_answer() -> Answer:
            answers: list[Answer] = []
            jax.eval_shape(lambda: answers.append(question(self)))
            return answers[0]

        return _ANSWERS.get((question, program_key(self)), traced_answer)

    return ask
