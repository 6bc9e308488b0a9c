"""What a run observed, as numbers for programs: every array of a report, of those over time the last entry.

    {"energy": {"mean": 0.5012, "stderr": 0.0031, "std": ..., "count": 1000, "time": 10.0}, ...}

A number that is not one is null. An array of more than a thousand numbers is left in the folder, and its shape is given instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.store import ZarrGroup

_MOST = 1000


def observed(reports: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The numbers of every report."""
    return {name: _numbers(report.variables, report.coordinates) for name, report in reports.items()}


def observed_in(results: ZarrGroup) -> dict[str, dict[str, Any]]:
    """The same of stored results."""
    return {name: _stored(member) for name, member in results.members.items() if name not in ("final", "outcome") and isinstance(member, ZarrGroup)}


def _stored(report: ZarrGroup) -> dict[str, Any]:
    arrays = {name: (tuple(array.axes), array) for name, array in report.members.items() if not isinstance(array, ZarrGroup)}
    used = {axis for name, (axes, _) in arrays.items() if axes != (name,) for axis in axes}
    coordinates = {name: np.asarray(array) for name, (axes, array) in arrays.items() if axes == (name,) and name in used}
    return _numbers({name: part for name, part in arrays.items() if name not in coordinates}, coordinates)


def _numbers(variables: Mapping[str, Any], coordinates: Mapping[str, Any]) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for kind, (axes, values) in variables.items():
        array = np.asarray(values)
        last = array.take(-1, axes.index("time")) if "time" in axes else array
        numbers[kind] = _plain(last) if last.size <= _MOST else {"shape": list(last.shape)}
    for axis, values in coordinates.items():
        if axis not in numbers and np.size(values) <= _MOST:
            numbers[axis] = _plain(np.asarray(values)[-1] if axis == "time" else np.asarray(values))
    return numbers


def _plain(array: np.ndarray) -> Any:
    """Numbers as JSON has them, which knows neither NaN nor infinity."""
    known = np.isfinite(array) if array.dtype.kind == "f" else np.ones(array.shape, bool)
    return np.where(known, array.astype(object), np.full((), None)).tolist()
