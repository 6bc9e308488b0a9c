"""Arrays for a moment, in memory that is used again and again.

Fresh memory for every portion of rows costs more than what is computed in it: the system hands out pages one by one (3 ns a number against 0.4).
"""

import threading
from typing import Any

import numpy as np

_HERE = threading.local()
_KEPT = 2**20  # bytes of an array that a thread may keep


def scratch(shape: tuple[int, ...], dtype: Any = float, which: int = 0) -> np.ndarray:
    """An array of any content, valid until this thread asks again for the same `which`."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    held: dict[int, np.ndarray] = vars(_HERE).setdefault("arrays", {})
    if which not in held or held[which].size < size:
        held[which] = np.empty(size, np.uint8)
    return held[which][:size].view(dtype).reshape(shape)


def release() -> None:
    """What is large is given back: threads outlive a run."""
    held: dict[int, np.ndarray] = vars(_HERE).get("arrays", {})
    for which in [which for which, array in held.items() if array.size > _KEPT]:
        del held[which]
