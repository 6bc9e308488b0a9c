"""A scheme in words: its action, what is solved for and how, what it costs, and what it claims."""

import sys

from bismut.actions import Action, DiscreteHamiltonian
from bismut.arguments import checked
from bismut.ensembles.checks import RUN
from bismut.ensembles.explaining import ensemble_words
from bismut.flows import Flow, Variational
from bismut.flows.coadjoint import Coadjoint
from bismut.flows.generating import Generated
from bismut.mechanics import Scheme
from bismut.process import check_process
from bismut.showing import Words, counted
from bismut.spaces import Dual


@checked(**RUN)
def explain(scheme: Scheme) -> str:
    """In words and formulas: the action of a scheme, what is solved for and how, what it costs, and what it claims."""
    check_process()
    system, claims = scheme.system, scheme.promised
    lines = [f"{scheme.title} on {scheme.space}: {_freedom(scheme)}, {counted(scheme.channels, 'Wiener process', 'Wiener processes')}"]
    if isinstance(scheme, Flow):
        lines += scheme.details()
    if isinstance(scheme, DiscreteHamiltonian):
        lines += [f"  generating   {formula}" for formula in _formulas(scheme)]
        lines += _reduced(scheme) if system.reduced else _canonical(scheme)
        if scheme.implicit_noise:
            lines.append(
                "  increments   as they are; path=Wiener(seed, bounded=True) keeps |ΔW| ≤ √(4 h max(|ln h|, 1)), and steps exist almost surely"
            )
    if isinstance(scheme, Action):
        structure = Variational(scheme).structure()
        lines += [f"  action       {formula}" for formula in _formulas(scheme)]
        lines.append(f"  unknown      the velocity v of the step, {system.space.dim} components; q1 = q0 ⊕ h v, p1 = D₂S_d + f⁺")
        if system.constraints:
            lines.append(f"  constraints  {system.constraints} multipliers Λ with g(q1) = 0, then p1 + G(q1)ᵀΛ′ with G v = 0")
        pull = " + G(q0)ᵀΛ" if system.constraints else ""
        lines.append(f"  solve        p0{pull} = −D₁S_d(q0, q0 ⊕ h v) − f⁻: {structure.words}")
        lines.append(f"  cost         {structure.cells.width} tangents of the residual and one block solve per iteration")
        explicit = scheme.explicit_force and system.force_sees_velocity
        if system.pushed:
            when = "explicit, with the velocity at the start of the step" if explicit else "with the velocity of the step"
            lines.append(f"  force        as impulses of its virtual work along the step; {when}")
        if system.random_forces:
            when = "with the velocity half way through the kick" if explicit and system.kick_sees_velocity else "where the action looks at the noise"
            lines.append(f"  random       {counted(system.random_forces, 'random force')} F_j ∘ dW_j, as virtual work {when}")
        if scheme.forced and not system.forced:
            lines.append("  force        the impulses f⁻ and f⁺ that were given")
    whole = "a Poisson map" if system.reduced else "symplectic"
    kept = [word for word, flag in ((whole, claims.symplectic), ("keeps momentum maps", claims.momentum_maps)) if flag and not scheme.forced]
    kept += [word for word, flag in (("its own adjoint", claims.self_adjoint), ("keeps Casimirs", claims.casimirs)) if flag]
    orders = [f"order {claims.order:g}"] if claims.order is not None else []
    orders += [f"strong order {claims.strong_order:g}"] if claims.strong_order is not None and scheme.channels else []
    orders += [f"weak order {claims.weak_order:g}"] if claims.weak_order is not None and scheme.channels else []
    lines.append(f"  claims       {', '.join([*orders, *kept]) or 'nothing'} (measure them: bm.verify)")
    return Words("\n".join([*lines, *ensemble_words(scheme)]))


def _canonical(scheme: DiscreteHamiltonian) -> list[str]:
    unknown = f"  unknown      {scheme.space.dim} components of p̄, and as many of x = q1 ⊖ q0; p1 = D₂S"
    return [unknown, f"  solve        x = ∂K_d/∂p̄, p0 = −D₁S {Generated(scheme).shape().words}"]


def _reduced(scheme: DiscreteHamiltonian) -> list[str]:
    step = Coadjoint(scheme)
    n, moved = scheme.space.dim, isinstance(scheme.space, Dual) and scheme.space.shape is not None
    carried = f"  advected     q is a, an array {scheme.space.shape}: a1 = τ(ξ)⁻¹·a0" if moved else ""  # pyright: ignore
    kept = f"  Casimirs     {', '.join(scheme.system.invariants)}: kept for every path, whatever the residual" if scheme.system.invariants else ""
    lines = [
        f"  reduced      states are (a, μ) as (q, p): {n} components of p̄ = μ̄, and as many of ξ; μ1 = Ad*_τ(ξ) μ0, on its coadjoint orbit",
        f"  solve        ξ = ∂K_d/∂μ̄, μ0 = (dτ⁻¹_ξ)* μ̄ {step.words}",
        carried,
        kept,
    ]
    return [line for line in lines if line]


def _freedom(scheme: Scheme) -> str:
    """How many degrees of freedom there are, and what the constraints took."""
    system = scheme.system
    if system.reduced:
        return counted(system.space.dim, "dimension of the algebra", "dimensions of the algebra")
    free = counted(system.freedom, "degree of freedom", "degrees of freedom")
    return f"{free} ({system.space.dim} less {counted(system.constraints, 'constraint')})" if system.constraints else free


def _formulas(scheme: Scheme) -> list[str]:
    """The indented lines that open the file of a scheme: its scalar, said as an equation."""
    # A class made in a notebook or by exec may belong to no module that can be found.
    text = getattr(sys.modules.get(type(scheme).__module__), "__doc__", None) or ""
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]
