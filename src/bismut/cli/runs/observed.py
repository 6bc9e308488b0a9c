"""What a run observed, as numbers for programs: every array of a report, of those over time the last entry.

    {"energy": {"mean": 0.5012, "stderr": 0.0031, "std": ..., "count": 1000, "time": 10.0}, ...}

A number that is not one is null. An array of more than a thousand numbers is left in the folder, and its shape is given instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST = 1000


def observed(reports: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The numbers of every report."""
    return {name: _report(report) for name, report in reports.items()}


def _report(report: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, (axes, values) in report.variables.items():
        array = np.asarray(values)
        last = array.take(-1, axes.index("time")) if "time" in axes else array
        found[kind] = _plain(last) if last.size <= _MOST else {"shape": list(last.shape)}
    for axis, values in report.coordinates.items():
        if axis not in found and np.size(values) <= _MOST:
            found[axis] = _plain(np.asarray(values)[-1] if axis == "time" else np.asarray(values))
    return found


def _plain(array: np.ndarray) -> Any:
    """Numbers as JSON has them, which knows neither NaN nor infinity."""
    known = np.isfinite(array) if array.dtype.kind == "f" else np.ones(array.shape, bool)
    return np.where(known, array.astype(object), np.full((), None)).tolist()
