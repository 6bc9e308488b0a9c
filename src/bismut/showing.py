"""How things show themselves: in a line of text, and in a notebook as a heading with a table. The only place where HTML is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from html import escape
from typing import Any

import numpy as np
from jax.core import Tracer

_FEW = 6  # numbers that are shown; of more only the shape is

_CELL = 'style="text-align:left;vertical-align:top;white-space:pre-wrap"'


def table(title: str, rows: Iterable[Sequence[Any]], columns: Sequence[str] = ()) -> str:
    """A heading and rows, in HTML; every word is escaped."""
    line = lambda cells, tag: "<tr>" + "".join(f"<{tag} {_CELL}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
    head = f"<thead>{line(columns, 'th')}</thead>" if columns else ""
    body = "".join(line(row, "td") for row in rows)
    return f"<div><strong>{escape(title)}</strong><table>{head}<tbody>{body}</tbody></table></div>"


def bar(fraction: float, words: str) -> str:
    """A bar with words beside it, in HTML."""
    return f'<div><progress value="{fraction:.4f}" max="1"></progress> <code>{escape(words)}</code></div>'


def text(words: str) -> str:
    """Words as they stand, in HTML."""
    return f"<pre>{escape(words)}</pre>"


class Words(str):
    """Text that a prompt or a notebook shows as it reads, with its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return text(self)


def called(function: Callable | None) -> str:
    """What a function is called: its name, or `own function` if it has none."""
    if isinstance(function, partial):
        return called(function.func)
    name = getattr(function, "__name__", None)
    if name is None:
        return repr(function)
    return "own function" if name == "<lambda>" else name


def settings(made: Any) -> str:
    """A dataclass by what was chosen about it, functions by their names: Histogram(functions=(energy), bins=(100), ...)."""
    chosen = {field.name: getattr(made, field.name) for field in fields(made) if getattr(made, field.name) is not field.default}
    return f"{type(made).__name__}({', '.join(f'{name}={_named(value)}' for name, value in chosen.items() if value not in (None, ()))})"


def _named(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_named, value))})"
    return called(value) if callable(value) else repr(value)


def brief(value: Any) -> str:
    """Numbers as they are if there are few, otherwise their kind and shape: f64[3,3]. Trees keep their form."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {brief(part)}" for name, part in value.items()) + "}"
    if isinstance(value, tuple | list):
        inside = ", ".join(map(brief, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return repr(value)
    if isinstance(value, Tracer) or np.size(value) > _FEW:
        return f"{np.dtype(value.dtype).kind}{8 * np.dtype(value.dtype).itemsize}[{','.join(map(str, value.shape))}]"
    return np.array2string(np.asarray(value), precision=6, separator=", ", threshold=_FEW).replace("\n", "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """1 trajectory, 2 trajectories."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def per_second(rate: float) -> str:
    """How many path-steps a second: 12.3 M, 45.1 k or 812, whatever suits."""
    size, prefix = next(((size, prefix) for size, prefix in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if rate >= size), (1.0, ""))
    return f"{rate / size:.3g}{prefix} path-steps/s"


def measured(mean: Any, error: Any) -> str:
    """A number with its standard error to two digits, 0.5012 ± 0.0031; of an array each component; without a known error six digits."""
    mean, error = np.asarray(mean, float), np.asarray(error, float)
    if mean.ndim:
        return _each(mean, np.broadcast_to(error, mean.shape))
    value, spread = float(mean), float(error)
    if not np.isfinite(spread) or not np.isfinite(value):
        return f"{value:.6g}"
    # Below a few units in the last place of the mean an error is round-off: nothing varies.
    if spread <= 8 * np.finfo(float).eps * abs(value):
        return f"{value:.6g} ± 0"
    digits = 1 - int(np.floor(np.log10(float(f"{spread:.1e}"))))  # decimals that show two digits of the error
    power = int(np.floor(np.log10(max(abs(value), spread))))
    if (-4 <= digits <= 9 and abs(value) < 1e6) or power == 0:
        return f"{round(value, digits):.{max(digits, 0)}f} ± {round(spread, digits):.{max(digits, 0)}f}"
    return f"({measured(value / 10.0**power, spread / 10.0**power)})e{power}"


def _each(mean: np.ndarray, error: np.ndarray) -> str:
    if mean.size > _FEW:
        return f"{mean.size} numbers, the first {measured(mean.flat[0], error.flat[0])}"
    return "[" + ", ".join(measured(m, e) for m, e in zip(mean, error, strict=True)) + "]"
