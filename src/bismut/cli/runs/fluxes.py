"""What `bismut transport` follows, by numbers: entries of a quantity, and parts of a displacement.

    --entry 0,1 --entry 0,2       J_s = O[0, 1], O[0, 2]            samples s of one flux, over which is averaged
    --part 0,2                    x_k → (x_k0, x_k2)                of each body k
    --weights 0.5,-0.5            x → Σ_k w_k x_k                   one number for each body, or for each component of a single one

They compare equal when they mean the same, so that a second run of the same program compiles nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from bismut.ensembles import Observable
from bismut.ensembles.observable import with_time
from bismut.errors import BismutError
from bismut.response.displacements import bodies_and_components
from bismut.spaces import Space


@dataclass(frozen=True)
class FluxEntries:
    """Some numbers of a quantity, (samples, 1)."""

    of: Any
    entries: tuple[tuple[int, ...], ...]

    def __call__(self, system, state, t):
        array = jnp.asarray(self.of(system, state, t) if isinstance(self.of, Observable) else with_time(self.of, state, t=t))
        for entry in self.entries:
            if len(entry) != array.ndim or any(not 0 <= i < n for i, n in zip(entry, array.shape, strict=True)):
                wanted = f"{array.ndim} indices, counted from 0" if array.ndim else "no --entry"
                raise BismutError(f"--entry {_listed(entry)} was given, but the flux has shape {array.shape}: expected {wanted}.")
        return jnp.stack([array[entry] for entry in self.entries])[:, None]


@dataclass(frozen=True)
class DisplacementPart:
    """A linear part of a displacement, (bodies, components)."""

    space: Space
    components: tuple[int, ...]
    weights: tuple[float, ...]

    def __call__(self, v):
        x = bodies_and_components(self.space, v)
        if self.weights:
            x = jnp.reshape(x, (-1, 1)) if len(x) == 1 else x
            if len(self.weights) != len(x):
                raise BismutError(f"--weights expects one number for each of the {len(x)} bodies, or components of one, got {len(self.weights)}.")
            x = jnp.asarray(self.weights, x.dtype)[None] @ x
        if beyond := [i for i in self.components if not 0 <= i < x.shape[1]]:
            raise BismutError(f"--part {_listed(beyond)} was given, but there are {x.shape[1]} components, counted from 0.")
        return x[:, list(self.components)] if self.components else x


def flux_of(quantity: Any, entries: list[str] | None) -> Any:
    """The quantity, or the entries of it that were typed."""
    if not entries:
        return quantity
    return Observable("entries", FluxEntries(quantity, tuple(tuple(numbers("--entry", text, int)) for text in entries)))


def part_of(space: Space, components: str | None, weights: str | None) -> DisplacementPart | None:
    """The part of a displacement that was typed; None for all of it."""
    if components is None and weights is None:
        return None
    return DisplacementPart(space, tuple(numbers("--part", components or "", int)), tuple(numbers("--weights", weights or "", float)))


def numbers(option: str, text: str, kind: type) -> list[Any]:
    """What stands between commas."""
    try:
        return [kind(one) for one in text.split(",") if one.strip()]
    except ValueError:
        named, example = ("whole numbers", "0,2") if kind is int else ("numbers", "0.5,-0.5")
        raise BismutError(f"{option} expects {named} separated by commas, as in {option} {example}, got {text!r}.") from None


def _listed(indices: Any) -> str:
    return ",".join(map(str, indices))
