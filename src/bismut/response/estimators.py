"""Ways to a derivative, as one kind of thing: whether it applies, single-trajectory estimates, what a step of it costs.

pathwise      ⟨∂O/∂z · δz + ∂O/∂θ⟩, forward, one tangent for each parameter             (`tangents`)
likelihood    ⟨δO⟩ − ⟨(O − ⟨O⟩) w⟩ with the score w of the noise                        (`tangents`)
covariance    ⟨∂O/∂θ⟩ − cov(O, ∂u/∂θ), equilibrium alone                                (`covariance`)
adjoint       the pathwise one backwards, all parameters at once                        (`adjoint`)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles.observable import Observable, value_of
from bismut.findings.cost import BY_XLA, operations_of, step_operations
from bismut.flows import kernel
from bismut.mechanics import Scheme, State
from bismut.noise import Path
from bismut.programs import equations, trace
from bismut.programs.dependence import depends
from bismut.programs.operation import lookup
from bismut.programs.program import Refused
from bismut.response import covariance
from bismut.response.adjoint import SLOTS, STRETCH, backward, passes_for
from bismut.response.parameters import Parameters, in_constraint
from bismut.response.tangents import NoiseShift, control_of, follow, mass_dependent_momenta, noise_moves_with, step_cost

_TANGENTS = 32  # parameters that are followed forward
_CONTROLLED = 16  # dimensions of a space up to which noise is inverted in every step
_OUTPUTS = 32  # components of O that are turned around
_BACK = 8  # of the way back, by XLA as well: of an oscillator adjoint takes 17 times as long as simulate, counted as 20
NAMES = ("pathwise", "likelihood", "covariance", "adjoint")


@dataclass(frozen=True)
class Question:
    """What is differentiated."""

    scheme: Scheme
    start: Any
    of: Any
    parameters: Parameters
    path: Path
    state: State  # one of them
    smooth: bool
    equilibrium: bool
    batch: bool  # whether every trajectory has a start of its own
    run: dict[str, Any]  # step, steps, every, burn_in, t0

    @property
    def outputs(self) -> int:
        shape = jax.eval_shape(lambda state: jnp.ravel(value_of(self.of, self.scheme, state, jnp.zeros((), self.scheme.system.dtype))), self.state)
        return int(shape.shape[0])

    @property
    def jumps(self) -> str:
        """The operation by which O may jump; empty if none is in it, or if it was said to be smooth."""
        return next((e.primitive.name for e in self._operations if lookup(e.primitive.name).may_jump(e)), "")

    @property
    def cut(self) -> bool:
        """Whether O is made of an angle that jumps where it has gone round, which many functions of it do not see."""
        return any(e.primitive.name == "atan2" for e in self._operations)

    @property
    def _operations(self) -> list:
        """Those of O, unless it is known to be smooth."""
        if self.smooth or isinstance(self.of, Observable):
            return []
        zero = jnp.zeros((), self.scheme.system.dtype)
        try:
            return list(equations(trace(lambda state: value_of(self.of, self.scheme, state, zero), self.state).program))
        except Refused:
            return []


class Estimates(NamedTuple):
    """Estimates of single trajectories (n, P, M), their values of O (n, M), how many failed, and the engine."""

    each: np.ndarray
    value: np.ndarray
    failed: int
    engine: str
    note: str = ""


def why_not(name: str, question: Question, control: NoiseShift) -> str:
    """Why an estimator does not apply; empty where it does."""
    if name == "covariance":
        if not question.equilibrium:
            return "at a time the distribution is not known; give equilibrium=True"
        return covariance.why_not(question.scheme, question.parameters)
    if not question.scheme.pathwise:
        return "acceptance depends on the parameters too: the derivative of an average is not that of its paths"
    if not question.equilibrium and in_constraint(question.scheme, question.parameters):
        return "the start lies on the constraint of one value alone, so at a time nothing says how it moves; give equilibrium=True"
    if question.batch and mass_dependent_momenta(question.start):
        return "starts of their own with velocities or temperatures; give their momenta"
    if name != "adjoint" and question.parameters.count > _TANGENTS:
        return f"{question.parameters.count} parameters, more than the {_TANGENTS} that are followed forward"
    if name == "likelihood":
        return _no_score(question, control)
    if jumps := question.jumps:
        return f"O may jump ({jumps}), which its derivative does not see; give smooth=True if it does not"
    if name == "adjoint" and question.outputs > _OUTPUTS:
        return f"O has {question.outputs} components, more than the {_OUTPUTS} that are turned around"
    return ""


def _no_score(question: Question, control: NoiseShift) -> str:
    scheme, jumps = question.scheme, question.jumps
    if not scheme.channels:
        return "there is no noise"
    if scheme.space.dim > _CONTROLLED:
        return f"{scheme.space.dim} dimensions, more than the {_CONTROLLED} in which the noise of a step is inverted"
    if noise_moves_with(scheme, question.parameters, question.state):
        return "the noise itself depends on a parameter: its score grows without bound as the step gets smaller"
    if jumps and control.kind != "q":
        return f"O may jump ({jumps}), and what noise does not reach moves by O(h); give smooth=True if it does not"
    if jumps and _sees_momentum(question):
        return f"O may jump ({jumps}) in p, which moves by O(h); give smooth=True if it does not"
    return ""


def _sees_momentum(question: Question) -> bool:
    zero = jnp.zeros((), question.scheme.system.dtype)
    return depends(lambda p: value_of(question.of, question.scheme, State(question.state.q, p), zero), question.state.p)


def sample(name: str, question: Question, control: NoiseShift, first: int, trajectories: int) -> Estimates:
    """Estimates of so many trajectories."""
    common = (question.scheme, question.start, question.of, question.parameters)
    run = {**question.run, "first": first, "trajectories": trajectories}
    if name == "covariance":
        return Estimates(*covariance.covariances(*common, question.path, **run))
    if name == "adjoint":
        there = backward(*common, question.path, **run)
        return Estimates(there.gradient, there.value, there.failed, there.engine, f"; {there.held} states kept, {there.passes} passes")
    followed = follow(*common, control if name == "likelihood" else NoiseShift(), question.path, **run)
    each = followed.tangent
    if name == "likelihood":
        # Of a jump the derivative is no number but 0: nothing moves where O can jump.
        mean = followed.value.mean(0)
        each = (0.0 if question.jumps else each) - (followed.product - followed.weight[:, :, None] * mean)
    reached = {"q": "; noise undoes points", "p": "; noise undoes momenta"}.get(control.kind, "") if name == "likelihood" else ""
    return Estimates(each, followed.value, followed.failed, followed.engine, reached)


def cost(name: str, question: Question, control: NoiseShift, engine: str) -> float:
    """Operations of a trajectory, in those of a plain one."""
    scheme, parameters = question.scheme, question.parameters
    plain = step_operations(scheme, question.state)
    dtype = scheme.system.dtype
    if name == "covariance":
        watch, number = covariance.Covarying(question.of, parameters), jax.ShapeDtypeStruct((), dtype)
        seen = operations_of(trace(lambda state, t: watch._seen(scheme, state, t), question.state, number).program)
        return (plain + seen / question.run["every"]) / plain * (BY_XLA if engine == "xla" else 1)
    if name == "adjoint":
        carry = jax.eval_shape(lambda: kernel.begin(scheme, question.state, jnp.zeros((), dtype)))
        number, dW = jax.ShapeDtypeStruct((), dtype), jax.ShapeDtypeStruct((scheme.channels,), dtype)
        theta = parameters.vector(scheme)

        def turned(carry, h, dW, t, after):
            step = lambda theta, carry: kernel.step(parameters.put(scheme, theta), carry, h, dW, t)[0]
            return jax.vjp(step, jnp.asarray(theta, dtype), carry)[1](after)

        total = question.run["burn_in"] + question.run["steps"]
        passes = passes_for(-(-total // STRETCH), SLOTS)
        return passes + _BACK * (1 + question.outputs * operations_of(trace(turned, carry, number, dW, number, carry).program) / plain)
    return step_cost(scheme, parameters, control if name == "likelihood" else NoiseShift(), question.state, engine) / plain


def control_for(question: Question) -> NoiseShift:
    """What the noise undoes in the likelihood ratio."""
    if not question.scheme.channels or question.scheme.space.dim > _CONTROLLED or not question.scheme.pathwise:
        return NoiseShift("p")
    return control_of(question.scheme, question.state, question.run["step"])
