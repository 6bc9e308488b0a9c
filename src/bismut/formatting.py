"""Text and HTML forms of values: counts, numbers with errors, lists, tables for notebooks. The only module that writes HTML.

Nothing heavy is imported with this module, because `bismut --help` imports it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_FEW = 6  # numbers that are shown; of more only the shape is
# Control characters except line ends and tabs, marks that change the direction of writing, and halves of surrogate pairs.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_CELL = 'style="text-align:left;vertical-align:top;white-space:pre-wrap"'


def table(title: str, rows: Iterable[Sequence[Any]], columns: Sequence[str] = ()) -> str:
    """A heading and rows, in HTML; every word is escaped."""
    line = lambda cells, tag: "<tr>" + "".join(f"<{tag} {_CELL}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
    head = f"<thead>{line(columns, 'th')}</thead>" if columns else ""
    body = "".join(line(row, "td") for row in rows)
    return f"<div><strong>{escape(title)}</strong><table>{head}<tbody>{body}</tbody></table></div>"


def bar(fraction: float, label: str) -> str:
    """A progress bar with a label, in HTML."""
    return f'<div><progress value="{fraction:.4f}" max="1"></progress> <code>{escape(label)}</code></div>'


def text(content: str) -> str:
    """Preformatted text, in HTML."""
    return f"<pre>{escape(content)}</pre>"


class PlainText(str):
    """Text whose repr is the text itself, line breaks included; preformatted in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return text(self)


def function_name(function: Callable | None) -> str:
    """The name of a function, or `own function` if it has none."""
    if isinstance(function, partial):
        return function_name(function.func)
    name = getattr(function, "__name__", None)
    if name is None:
        return repr(function)
    return "own function" if name == "<lambda>" else name


def dataclass_repr(instance: Any) -> str:
    """A dataclass by its fields that differ from their defaults, functions by their names: Histogram(functions=(energy), bins=(100), ...)."""
    chosen = {field.name: getattr(instance, field.name) for field in fields(instance) if getattr(instance, field.name) is not field.default}
    return f"{type(instance).__name__}({', '.join(f'{name}={_named(value)}' for name, value in chosen.items() if value not in (None, ()))})"


def _named(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_named, value))})"
    return function_name(value) if callable(value) else repr(value)


def brief(value: Any) -> str:
    """Numbers as they are if there are few, otherwise their kind and shape: f64[3,3]. Trees keep their form."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {brief(part)}" for name, part in value.items()) + "}"
    if isinstance(value, tuple | list):
        inside = ", ".join(map(brief, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return repr(value)
    import numpy as np
    from jax.core import Tracer

    if isinstance(value, Tracer) or np.size(value) > _FEW:
        return f"{np.dtype(value.dtype).kind}{8 * np.dtype(value.dtype).itemsize}[{','.join(map(str, value.shape))}]"
    return np.array2string(np.asarray(value), precision=6, separator=", ", threshold=_FEW).replace("\n", "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """1 trajectory, 2 trajectories."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def memory_size(count: int | float) -> str:
    """So many bytes: 812 B, 45.1 kB, 1.7 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def per_second(rate: float) -> str:
    """How many path-steps a second: 12.3 M, 45.1 k or 812, whatever suits."""
    size, prefix = next(((size, prefix) for size, prefix in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if rate >= size), (1.0, ""))
    return f"{rate / size:.3g}{prefix} path-steps/s"


def with_error(mean: Any, error: Any) -> str:
    """A number with its standard error to two digits, 0.5012 ± 0.0031; of an array each component; without a known error six digits."""
    import numpy as np

    mean, error = np.asarray(mean, float), np.asarray(error, float)
    if mean.ndim:
        return _array_with_errors(mean, np.broadcast_to(error, mean.shape))
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
    return f"({with_error(value / 10.0**power, spread / 10.0**power)})e{power}"


def _array_with_errors(mean: np.ndarray, error: np.ndarray) -> str:
    if mean.size > _FEW:
        return f"{mean.size} numbers, the first {with_error(mean.flat[0], error.flat[0])}"
    return "[" + ", ".join(with_error(m, e) for m, e in zip(mean, error, strict=True)) + "]"


def first_of(items: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first few, and how many more there are."""
    rest = len(items) - most
    return between.join((*items[:most], f"and {rest} more") if rest > 0 else items)


def printable(text: str) -> str:
    """A text that is safe on a terminal: characters that would move the cursor, change colours or reverse the text are escaped, as \\x1b."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
