"""The report of an observer: named arrays with labelled axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bismut.errors import nearest
from bismut.formatting import brief, table, with_error

if TYPE_CHECKING:
    import xarray

_FEW = 6  # swept values whose means fit into a line

Variables = dict[str, tuple[tuple[str, ...], np.ndarray]]


class Population(NamedTuple):
    """The population of a statistic: trajectories asked for, those run, and those of them that failed; of a sweep, one number for each value."""

    asked: int | list[int]
    run: int | list[int]
    failed: int | list[int]

    @property
    def counted(self) -> int | list[int]:
        """Trajectories that finished."""
        return np.subtract(self.run, self.failed).tolist()

    def __str__(self) -> str:
        """A mark where trajectories failed; empty otherwise."""
        failed, run = int(np.sum(self.failed)), int(np.sum(self.run))
        if not failed:
            return ""
        worst = "" if isinstance(self.counted, int) else f", {min(self.counted)} left at worst"
        return f"⚠ over {run - failed} of {run} trajectories: {failed} failed{worst}"


class ObserverReport:
    """Named results, each to be had as an attribute and labelled as xarray: `report.mean`, `report.stderr`, ...; all of them with `dataset()`.
    `population` says how many trajectories they are over, and how many failed."""

    def __init__(self, name: str, variables: Variables, coordinates: dict[str, np.ndarray], text: str = "", population: Population | None = None):
        self.name, self.variables, self.coordinates, self.text, self.population = name, variables, coordinates, text, population

    def __getattr__(self, kind: str) -> xarray.DataArray:
        if kind.startswith("_") or "variables" not in self.__dict__:
            raise AttributeError(kind)
        if kind not in self.variables:
            raise AttributeError(f"{self.name} has no {kind!r}. {nearest(kind, self.variables)}")
        import xarray

        axes, values = self.variables[kind]
        coordinates = {axis: self.coordinates[axis] for axis in axes if axis in self.coordinates}
        return xarray.DataArray(values, dims=axes, coords=coordinates, name=f"{self.name}_{kind}", attrs=self.attributes)

    def __dir__(self):
        return [*super().__dir__(), *self.variables]

    def dataset(self) -> xarray.Dataset:
        """Everything in one labelled set, for storage and plots."""
        import xarray

        return xarray.Dataset(
            {kind: (axes, values) for kind, (axes, values) in self.variables.items()},
            coords={axis: values for axis, values in self.coordinates.items() if axis in self.axes},
            attrs=self.attributes,
        )

    @property
    def axes(self) -> set[str]:
        """Those that the arrays have."""
        return {axis for axes, _ in self.variables.values() for axis in axes}

    @property
    def attributes(self) -> dict[str, int | list[int]]:
        """The population, as attributes of arrays."""
        p = self.population
        return {} if p is None else {"asked": p.asked, "run": p.run, "counted": p.counted, "failed": p.failed}

    def over(self, population: Population) -> ObserverReport:
        """The report with its population."""
        return ObserverReport(self.name, self.variables, self.coordinates, self.text, population)

    @property
    def line(self) -> str:
        """The report in one line, with the mark of its population."""
        mark = f"  {self.population}" if self.population is not None and str(self.population) else ""
        return f"{self.text or ', '.join(self.variables)}{mark}"

    def __repr__(self):
        return f"{self.name}: {self.line}"

    def _repr_html_(self) -> str:
        rows = [
            (kind, " × ".join(f"{axis} {n}" for axis, n in zip(axes, values.shape, strict=True)), brief(values))
            for kind, (axes, values) in self._arrays()
        ]
        return table(repr(self), rows, ("array", "axes", "values"))

    def _arrays(self):
        return [(kind, (axes, np.asarray(values))) for kind, (axes, values) in self.variables.items()]


def side_by_side(reports: Sequence[ObserverReport | None], axes: dict[str, np.ndarray]) -> ObserverReport:
    """The reports of a sweep as one, with the swept parameters as its first axes. Values that were not reached, and what some values have fewer of
    than others, are not numbers."""
    known = [report for report in reports if report is not None]
    first, shape = known[0], tuple(len(values) for values in axes.values())
    variables = {}
    for kind, (inner, _) in first.variables.items():
        each = [None if report is None else np.asarray(report.variables[kind][1]) for report in reports]
        shapes = {None if one is None else one.shape for one in each}
        most = tuple(int(n) for n in np.max([one.shape for one in each if one is not None], axis=0)) if inner else ()
        filled = [one if one is not None and len(shapes) == 1 else _filled(one, most) for one in each]
        variables[kind] = ((*axes, *inner), np.stack(filled).reshape(*shape, *most))
    longest = {axis: max((r.coordinates[axis] for r in known if axis in r.coordinates), key=len) for axis in first.coordinates}
    return ObserverReport(first.name, variables, {**axes, **longest}, _swept_text(variables, axes))


def _filled(values: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """The values in the first corner of an array of that shape, the rest not numbers."""
    filled = np.full(shape, np.nan)
    if values is not None:
        filled[tuple(slice(n) for n in values.shape)] = values
    return filled


def _swept_text(variables: Variables, axes: dict[str, np.ndarray]) -> str:
    """The last mean at each value, if there are few and it is one number; else how many values there are."""
    inner, values = variables.get("mean", ((), np.zeros(0)))
    if len(axes) == 1 and inner in ((*axes,), (*axes, "time")) and len(values) <= _FEW:
        (name,) = axes
        errors = variables.get("stderr", ((), np.full(values.shape, np.nan)))[1]
        last, error = (array[:, -1] if array.ndim > 1 else array for array in (values, errors))
        listed = ", ".join(with_error(m, e) for m, e in zip(last, error, strict=True))
        return f"mean {listed} for {name} = {', '.join(f'{value:.6g}' for value in axes[name])}"
    return f"{' × '.join(axes)} = {' × '.join(str(len(one)) for one in axes.values())} values"


def component_axes(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the axes of an observable that is an array."""
    return tuple(f"{name}_{i}" for i in range(len(shape)))


def short(value) -> str:
    return np.array2string(np.asarray(value), precision=6)
