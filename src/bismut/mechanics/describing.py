"""A system in words: one line, and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from bismut.showing import brief, counted

if TYPE_CHECKING:
    from bismut.mechanics.system import System


def line(system: System) -> str:
    what = [counted(system.channels, "Wiener process", "Wiener processes")] if system.channels else []
    what += ["forced"] if system.pushed else []
    what += [counted(system.random_forces, "random force")] if system.random_forces else []
    what += [counted(system.noise_hamiltonians, "noise Hamiltonian")] if system.noise_hamiltonians else []
    what += [counted(system.constraints, "constraint")] if system.constraints else []
    what += [f"symmetries {', '.join(system.symmetries)}"] if system.symmetries else []
    what += [f"invariants {', '.join(system.invariants)}"] if system.invariants else []
    what += [f"parameters {brief(system.parameters)}"] if jax.tree.leaves(system.parameters) else []
    return f"System({'; '.join([str(system.space), *what])})"


def rows(system: System) -> list[tuple[str, str]]:
    """What is known of a system, line by line."""
    form = "T(v) − U(q)" if system.separable else "L(q, v)" if system.has_lagrangian else "none"
    form = ("Lagrangian", form) if system._hamiltonian is None else ("Hamiltonian", "H(a, μ)" if system.reduced else "H(q, p)")
    found = [("degrees of freedom", str(system.freedom)), form, ("Wiener processes", str(system.channels))]
    found += [("noise Hamiltonians", str(system.noise_hamiltonians))] if system.noise_hamiltonians else []
    found += [("force", "friction that balances the noise" if system._force is None else "F(q, v)")] if system.pushed else []
    found += [("random forces", str(system.random_forces))] if system.random_forces else []
    found += [("constraints", str(system.constraints))] if system.constraints else []
    found += [(f"symmetry {name}", symmetry.words) for name, symmetry in system.symmetries.items()]
    found += [("invariants", ", ".join(system.invariants))] if system.invariants else []
    found += [("parameters", brief(system.parameters))] if jax.tree.leaves(system.parameters) else []
    return found if system.precision == "float64" else [*found, ("precision", system.precision)]
