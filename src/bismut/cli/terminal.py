"""What a terminal can show, and closed pipes.

Formulas and marks are written with their own letters. Where the terminal has only ASCII they are spelled: ✓ becomes ok, γ becomes gamma. When the
reader of a pipe has ended (`bismut list | head -1`), the command ends without a message.
"""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any

from bismut.formatting import printable

CLOSED = 141  # 128 + SIGPIPE, as the shell reports it

_SPELLED = {
    **{"✓": "ok", "✗": "FAILED", "·": ".", "–": "-", "—": "-", "−": "-", "…": "...", "×": "x", "±": "+/-", "√": "sqrt", "∂": "d", "∘": "o"},
    **{"≤": "<=", "≥": ">=", "≈": "~", "→": "->", "↦": "->", "⟨": "<", "⟩": ">", "∫": "int", "ℝ": "R", "Σ": "Sum", "𝔊": "G"},
    **{"⊕": "(+)", "⊖": "(-)", "⊗": "(x)", "°": "deg", "∈": "in", "∞": "inf", "⟹": "=>", "’": "'", "“": '"', "”": '"'},
}


def _spelled(problem: UnicodeError) -> tuple[str, int]:
    """An error handler of `codecs`: the letters that cannot be written, spelled."""
    assert isinstance(problem, UnicodeEncodeError)
    return "".join(map(_letter, problem.object[problem.start : problem.end])), problem.end


def _letter(letter: str) -> str:
    if letter in _SPELLED:
        return _SPELLED[letter]
    name = unicodedata.name(letter, "")
    if name.startswith("GREEK"):  # GREEK SMALL LETTER GAMMA
        word = name.split(" LETTER ")[-1].split()[0]
        return word.capitalize() if "CAPITAL" in name else word.lower()
    plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()  # superscripts, ½, accents
    return plain or "?"


codecs.register_error("spelled", _spelled)


def make_readable() -> None:
    """Let standard output and error spell what they cannot write."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="spelled")


class Escaped:
    """A stream to which nothing is written that would command a terminal: folders and models come from others, and so may what they say. Progress
    bars and coloured tables are drawn by rich, which cleans texts itself and writes to `rich_proxied_file`."""

    def __init__(self, stream: Any):
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        return self.rich_proxied_file.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def escaped() -> Iterator[None]:
    """Within, whatever is printed is escaped."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream if stream is None or isinstance(stream, Escaped) else Escaped(stream) for stream in before)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def discard_output() -> int:
    """After a broken pipe: discard what is still to be written, and return the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return CLOSED
