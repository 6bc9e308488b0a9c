"""Units, at the edges alone: bismut computes with plain numbers, and a `Units` says what they are numbers of.

    unit of time = ℓ √(m/ε),      kT = k_B T / ε,      kJ/mol is an energy over N_A

Three units determine all others. `si` and `molecular` (nm, Da, kJ/mol, and so ps) are ready; `Units("3.4 angstrom", "39.9 dalton", "1 kJ/mol")` are
reduced units of argon. The package pint knows the names of units: pip install 'bismut[share]'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bismut.errors import BismutError, DomainError
from bismut.mechanics import Body, body

__all__ = ["Units", "molecular", "si"]

_DIMENSIONS = ("[length]", "[mass]", "[time]", "[temperature]", "[substance]")


@dataclass(frozen=True)
class Units:
    """A system of units: what the number 1 is as a length, a mass and an energy, each a unit or a quantity, "nm" or "3.4 angstrom"."""

    length: str
    mass: str
    energy: str

    def reduced(self, value: Any, unit: str | None = None) -> Any:
        """The plain number of a quantity: reduced("300 K") is kT, reduced(points, "angstrom") an array of lengths.

        value  a number or an array with a `unit`; or text such as "1.5 ps", or a quantity of pint, that has its own
        """
        quantity = self._quantity(value, unit)
        base, powers = self._base(quantity)
        converted = (self._mechanical(quantity, powers) / base).to("dimensionless").magnitude
        return float(converted) if np.ndim(converted) == 0 else np.asarray(converted, float)

    def quantity(self, number: Any, unit: str) -> Any:
        """A plain number as a quantity of pint in a unit of its kind: quantity(result.times, "ps"), quantity(kT, "kelvin")."""
        registry = self._registry
        try:
            one = registry.Quantity(1.0, unit)
        except _problems() as problem:
            raise BismutError(f"{unit!r} cannot be read as a unit: {problem}") from None
        base, powers = self._base(one)
        per = self._mechanical(one, powers)  # the unit as a product of lengths, masses and times
        return registry.Quantity(np.asarray(number)[()] * (base / per).to("dimensionless").magnitude, unit)

    def kT(self, temperature: str) -> float:
        """k_B T as an energy, the number that temperature= takes: kT("300 K")."""
        quantity = self._quantity(temperature, None)
        if dict(quantity.dimensionality) != {"[temperature]": 1}:
            raise DomainError(f"Expected a temperature such as '300 K', got {temperature!r}.")
        if not quantity.magnitude >= 0:
            raise DomainError(f"Expected an absolute temperature ≥ 0 K, got {temperature!r}.")
        return self.reduced(quantity)

    def body(self, points: Any, masses: Any, *, length: str = "angstrom", mass: str = "dalton") -> Body:
        """The rigid body of a point cloud as a PDB file has it: positions (n, 3) in ångströms and masses (n,) in daltons, or in other units."""
        return body(self.reduced(points, length), self.reduced(masses, mass))

    @property
    def time(self) -> Any:
        """The unit of time, ℓ √(m/ε), as a quantity of pint."""
        return self._bases["[time]"]

    @cached_property
    def _registry(self) -> Any:
        try:
            import pint
        except ModuleNotFoundError as problem:
            raise BismutError("Units need pint, which is not installed here: pip install 'bismut[share]', or pip install pint.") from problem
        return pint.get_application_registry()

    @cached_property
    def _bases(self) -> dict[str, Any]:
        length, mass = (self._unit(name, dimension) for name, dimension in ((self.length, "[length]"), (self.mass, "[mass]")))
        energy = self._unit(self.energy, "[length] ** 2 * [mass] / [time] ** 2")
        return {"[length]": length, "[mass]": mass, "[time]": (length * (mass / energy) ** 0.5).to("second")}

    def _unit(self, name: str, dimension: str) -> Any:
        quantity = self._quantity(name, None)
        quantity = self._mechanical(quantity, self._powers(quantity))
        if not quantity.check(dimension) or not np.isfinite(quantity.magnitude) or quantity.magnitude <= 0:
            raise DomainError(f"Expected a positive quantity of dimension {dimension}, got {name!r}.")
        return quantity

    def _quantity(self, value: Any, unit: str | None) -> Any:
        registry = self._registry
        if unit is None and not isinstance(value, str) and not hasattr(value, "to_root_units"):
            raise DomainError(f"Expected a quantity with a unit, such as '1.5 nm', got {value!r}.")
        try:
            if unit is not None:
                return registry.Quantity(np.asarray(value, float)[()], unit).to_root_units()
            quantity = registry.Quantity(value) if isinstance(value, str) else value
            return registry.Quantity(
                quantity.to_root_units().magnitude, str(quantity.to_root_units().units)
            )  # of this registry, whichever it came from
        except _problems() as problem:
            raise BismutError(f"{value if unit is None else unit!r} cannot be read as a quantity: {problem}") from None

    def _powers(self, quantity: Any) -> dict[str, float]:
        powers = dict(quantity.dimensionality)
        if unknown := set(powers) - set(_DIMENSIONS):
            raise DomainError(f"Units of length, mass and energy do not determine a unit of {', '.join(sorted(unknown))}, which {quantity} has.")
        return powers

    def _mechanical(self, quantity: Any, powers: dict[str, float]) -> Any:
        """Temperatures times k_B, moles times N_A."""
        registry = self._registry
        boltzmann, avogadro = registry.Quantity(1.0, "boltzmann_constant"), registry.Quantity(1.0, "avogadro_constant")
        return quantity.to_root_units() * boltzmann ** powers.get("[temperature]", 0) * avogadro ** powers.get("[substance]", 0)

    def _base(self, quantity: Any) -> tuple[Any, dict[str, float]]:
        """The unit of the kind of a quantity, and the dimensions of that."""
        powers = self._powers(quantity)
        mechanical = self._mechanical(self._registry.Quantity(1.0, quantity.to_root_units().units), powers)
        base = self._registry.Quantity(1.0)
        for dimension, power in mechanical.dimensionality.items():
            base = base * self._bases[dimension] ** power
        return base, powers


def _problems() -> tuple[type[Exception], ...]:
    """What pint raises of text that is not a quantity."""
    import pint

    return pint.errors.PintError, AttributeError, SyntaxError, TypeError, ValueError


si = Units("m", "kg", "J")
molecular = Units("nm", "dalton", "kJ/mol")
