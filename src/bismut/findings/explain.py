"""A scheme in words: its action, what is solved for and how, what it costs, and what it claims."""

import sys

import jax
import numpy as np

from bismut.actions import Action, DiscreteHamiltonian
from bismut.arguments import checked
from bismut.ensembles.checks import RUN
from bismut.ensembles.observable import energy
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Setting
from bismut.ensembles.task import engine_plan, known_plan
from bismut.findings.cost import operations_of
from bismut.flows import Flow, VariationalFlow
from bismut.flows.hamiltonian_step import CoadjointFlow, HamiltonianFlow
from bismut.formatting import PlainText, counted
from bismut.mechanics import Box, Scheme, State, System
from bismut.mechanics.bodies.inventory import acting_terms, declared_terms
from bismut.mechanics.bodies.lattice import LatticeTerm
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.bodies.terms import Potential, Terms
from bismut.noise import Wiener
from bismut.process import check_process
from bismut.programs import trace
from bismut.spaces import Dual


@checked(**RUN)
def explain(scheme: Scheme) -> str:
    """In words and formulas: the action of a scheme, what is solved for and how, what it costs, and what it claims."""
    check_process()
    system, claims = scheme.system, scheme.effective_claims
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
        structure = VariationalFlow(scheme).structure()
        lines += [f"  action       {formula}" for formula in _formulas(scheme)]
        lines.append(f"  unknown      the velocity v of the step, {system.space.dim} components; q1 = q0 ⊕ h v, p1 = D₂S_d + f⁺")
        if system.constraints:
            lines.append(f"  constraints  {system.constraints} multipliers Λ with g(q1) = 0, then p1 + G(q1)ᵀΛ′ with G v = 0")
        pull = " + G(q0)ᵀΛ" if system.constraints else ""
        lines.append(f"  solve        p0{pull} = −D₁S_d(q0, q0 ⊕ h v) − f⁻: {structure.describe()}")
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
    lines += _long_range(scheme)
    poisson = "a Poisson map" if system.reduced else "symplectic"
    kinds = ((poisson, claims.symplectic and not scheme.forced), ("keeps momentum maps", claims.momentum_maps and not scheme.forced))
    kinds += (("its own adjoint", claims.self_adjoint), ("keeps Casimirs", claims.casimirs))
    orders = {"order": claims.order}
    if scheme.channels:
        orders |= {"strong order": claims.strong_order, "weak order": claims.weak_order}
    stated = [f"{name} {value:g}" for name, value in orders.items() if value is not None] + [name for name, flag in kinds if flag]
    lines.append(f"  claims       {', '.join(stated) or 'nothing'} (measure them: bm.verify)")
    return PlainText("\n".join([*lines, *_ensembles(scheme)]))


def _canonical(scheme: DiscreteHamiltonian) -> list[str]:
    unknown = f"  unknown      {scheme.space.dim} components of p̄, and as many of x = q1 ⊖ q0; p1 = D₂S"
    return [unknown, f"  solve        x = ∂K_d/∂p̄, p0 = −D₁S {HamiltonianFlow(scheme).describe()}"]


def _reduced(scheme: DiscreteHamiltonian) -> list[str]:
    step = CoadjointFlow(scheme)
    n, moved = scheme.space.dim, isinstance(scheme.space, Dual) and scheme.space.shape is not None
    lines = [
        f"  reduced      states are (a, μ) as (q, p): {n} components of p̄ = μ̄, and as many of ξ; μ1 = Ad*_τ(ξ) μ0, on its coadjoint orbit",
        f"  solve        ξ = ∂K_d/∂μ̄, μ0 = (dτ⁻¹_ξ)* μ̄ {step.describe()}",
    ]
    if moved:
        lines.append(f"  advected     q is a, an array {scheme.space.shape}: a1 = τ(ξ)⁻¹·a0")  # pyright: ignore
    if scheme.system.invariants:
        lines.append(f"  Casimirs     {', '.join(scheme.system.invariants)}: kept for every path, whatever the residual")
    return lines


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


def _long_range(scheme: Scheme) -> list[str]:
    """What charges and dipoles do beyond a cutoff: how an Ewald sum is split and what its waves cost, or which reaction field there is."""
    system, terms, lines = scheme.system, declared_terms(scheme.system._potential), []
    surrounding = lambda dielectric: "a conductor" if np.isinf(dielectric) else f"a medium with ε = {dielectric:g}"
    if not isinstance(terms, Potential):
        return []
    whole = acting_terms(system._potential) or terms
    for alone in terms.single():
        (part,) = alone.parts
        if isinstance(part, PairTerm) and part.field is not None and part.cutoff is not None:
            where = "" if part.box is None else f", in {_sides(part.box)}"
            lines.append(f"  long range   reaction field of {surrounding(part.field.dielectric)} beyond {part.cutoff.end:.4g}{where}")
        if isinstance(part, LatticeTerm) and part.box is not None and part.splitting is not None:
            sum_, alpha, count = part.ewald, part.splitting.alpha, len(part.splitting.waves)
            near = sum_.cutoff(part.cutoff, part.box).end
            lines.append(f"  long range   Ewald sum of accuracy {sum_.accuracy:g} in {_sides(part.box)} within {surrounding(sum_.dielectric)}")
            within = 4 / 3 * np.pi * near**3 / float(np.prod(part.box.lengths))
            differentiated = whole is terms or any(one is part for one in whole.parts)
            share = (
                f"{_share(system, alone, whole, within):.0%} of the operations of the forces"
                if differentiated
                else "in the energy alone, as forces are given"
            )
            lines.append(f"               α = {alpha:.4g}, near part to {near:.4g}, {count} wave vectors: {share}")
    return lines


def _share(system: System, term: Potential, whole: Terms, within: float) -> float:
    """Operations of the forces of a term, of those of all, with that share of the bodies within the cutoff of one."""
    q, t = jax.eval_shape(lambda: system.space.origin(system.dtype)), jax.ShapeDtypeStruct((), system.dtype)
    forces = lambda energy: lambda q, t: jax.grad(lambda q: energy(q, None, t, system.parameters))(q)
    near = within * len(jax.tree.leaves(q)[0])
    own, of_all = (operations_of(trace(forces(energy), q, t).program, near) for energy in (term, whole))
    return own / of_all


def _sides(box: Box) -> str:
    return f"a box of {' × '.join(f'{side:.4g}' for side in box.lengths)}"


def _ensembles(scheme: Scheme) -> list[str]:
    """Which engine runs many trajectories, and why."""
    one = jax.eval_shape(lambda: State(scheme.space.origin(scheme.system.dtype), scheme.space.zero(scheme.system.dtype), scheme.own_ledger()))
    run = Setting(scheme, Wiener(0), (("energy", Records(energy)),))  # as `simulate` runs it, which may have chosen already
    plan = known_plan("auto", run, one) or engine_plan("auto", Setting(scheme, Wiener(0), ()), one)
    return [f"  ensembles    by the engine {plan.engine.name}: {plan.why}"]
