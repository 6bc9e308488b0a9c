"""What a watcher found: named arrays with labelled axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bismut.errors import nearest
from bismut.showing import brief, table

if TYPE_CHECKING:
    import xarray

_FEW = 6  # swept values whose means fit into a line

Variables = dict[str, tuple[tuple[str, ...], np.ndarray]]


class Report:
    """Named results, each to be had as an attribute and labelled as xarray: `report.mean`, `report.stderr`, ...; all of them with `dataset()`."""

    def __init__(self, name: str, variables: Variables, coordinates: dict[str, np.ndarray], words: str = ""):
        self.name, self.variables, self.coordinates, self.words = name, variables, coordinates, words

    def __getattr__(self, kind: str) -> xarray.DataArray:
        if kind.startswith("_") or "variables" not in self.__dict__:
            raise AttributeError(kind)
        if kind not in self.variables:
            raise AttributeError(f"{self.name} has no {kind!r}. {nearest(kind, self.variables)}")
        import xarray

        axes, values = self.variables[kind]
        coordinates = {axis: self.coordinates[axis] for axis in axes if axis in self.coordinates}
        return xarray.DataArray(values, dims=axes, coords=coordinates, name=f"{self.name}_{kind}")

    def __dir__(self):
        return [*super().__dir__(), *self.variables]

    def dataset(self) -> xarray.Dataset:
        """Everything in one labelled set, for storage and plots."""
        import xarray

        used = {axis for axes, _ in self.variables.values() for axis in axes}
        return xarray.Dataset(
            {kind: (axes, values) for kind, (axes, values) in self.variables.items()},
            coords={axis: values for axis, values in self.coordinates.items() if axis in used},
        )

    def __repr__(self):
        return f"{self.name}: {self.words or ', '.join(self.variables)}"

    def _repr_html_(self) -> str:
        rows = [
            (kind, " × ".join(f"{axis} {n}" for axis, n in zip(axes, values.shape, strict=True)), brief(values))
            for kind, (axes, values) in self._arrays()
        ]
        return table(repr(self), rows, ("array", "axes", "values"))

    def _arrays(self):
        return [(kind, (axes, np.asarray(values))) for kind, (axes, values) in self.variables.items()]


def side_by_side(reports: Sequence[Report | None], axes: dict[str, np.ndarray]) -> Report:
    """The reports of a sweep as one, with the swept parameters as its first axes; values that were not reached are not numbers."""
    first = next(report for report in reports if report is not None)
    shape = tuple(len(values) for values in axes.values())
    variables = {}
    for kind, (inner, values) in first.variables.items():
        blank = np.full(values.shape, np.nan)
        stacked = np.stack([blank if report is None else report.variables[kind][1] for report in reports])
        variables[kind] = ((*axes, *inner), stacked.reshape(*shape, *values.shape))
    return Report(first.name, variables, {**axes, **first.coordinates}, _swept_words(variables, axes))


def _swept_words(variables: Variables, axes: dict[str, np.ndarray]) -> str:
    """The last mean at each value, if there are few and it is one number; else how many values there are."""
    inner, values = variables.get("mean", ((), np.zeros(0)))
    if len(axes) == 1 and inner in ((*axes,), (*axes, "time")) and len(values) <= _FEW:
        (name,) = axes
        last = values[:, -1] if values.ndim > 1 else values
        listed = lambda numbers: ", ".join(f"{number:.6g}" for number in numbers)
        return f"mean {listed(last)} for {name} = {listed(axes[name])}"
    return f"{' × '.join(axes)} = {' × '.join(str(len(one)) for one in axes.values())} values"


def component_axes(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the axes of an observable that is an array."""
    return tuple(f"{name}_{i}" for i in range(len(shape)))


def short(value) -> str:
    return np.array2string(np.asarray(value), precision=6)
