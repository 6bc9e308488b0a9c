"""Planted defects: each is the right thing with one mistake in it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.flows import Flow, Solve
from bismut.flows.splitting import StepOutcome, WordSplitting
from bismut.mechanics import Claims, State
from bismut.spaces import SO3

INERTIA = np.array([1.0, 2.0, 3.3])


class Misprint(Flow):
    """The spatial rigid-body step with the printed sign: (dτ⁻¹_{hω'})*π' = (dτ⁻¹_{−hω})*π. Consistent, and not symplectic."""

    claims = Claims(order=1, symplectic=True, momentum_maps=True)

    def advance(self, state, h, dW, t):
        R, inertia = state.q, jnp.asarray(INERTIA)
        star = lambda x, mu: mu + 0.5 * jnp.cross(x, mu) + 0.25 * x * (x @ mu)
        spin = lambda R, pi: R @ ((R.T @ pi) / inertia)
        pi = R @ state.p
        w = spin(R, pi)
        R1 = R @ SO3().tau(h * R.T @ w)
        known = star(-h * w, pi)
        new = pi
        for _ in range(30):
            new = new - (star(h * spin(R1, new), new) - known)
        return State(R1, R1.T @ new), Solve(jnp.zeros(()), jnp.array(True), jnp.zeros((), int))


class SymplecticRungeKutta(bm.RungeKutta4):
    claims = Claims(order=4, symplectic=True, momentum_maps=True)


class LazyFriction(bm.Langevin):
    """Two per cent of the friction are missing."""

    def bath(self, state, h, z, t):
        return super().bath(state, 0.98 * h, z, t)


class Hot(bm.Langevin):
    """A bath 10 % too hot."""

    def kT(self, t):
        return 1.1 * super().kT(t)


class ColdRotation(bm.Langevin):
    """Noise with a wrong covariance: rotations end at 0.83 kT."""

    def kT(self, t):
        return 0.83 * super().kT(t)


class Clipped(bm.Langevin):
    """Gaussians cut off at two standard deviations."""

    def bath(self, state, h, z, t):
        return super().bath(state, h, jnp.clip(z, -2.0, 2.0), t)


@dataclass(frozen=True)
class TwoNodes(WordSplitting):
    """The noise at both ends of the step, half of the same ΔW each, instead of in the middle."""

    def step(self, substeps, state, slope, h, dW, z, extra, t):
        first, one, _ = substeps.noise_kick(state, 0.5 * dW, t)
        inner, two = substeps.drift(first, 0.5 * h, t)
        inner, three = substeps.kick(inner, substeps.force(inner.q, t), h, t)
        inner, _ = substeps.bath(inner, h, z[0], t)
        inner, four = substeps.drift(inner, 0.5 * h, t)
        last, five, _ = substeps.noise_kick(inner, 0.5 * dW, t)
        zero = jnp.zeros_like(h)
        return StepOutcome(last, Solve.worst([one, two, three, four, five]), zero, zero, jnp.ones_like(h))

    def baths(self, shaken):
        return 1


class Sloppy(bm.Langevin):
    """Constraints left at a tolerance of 1e−4."""

    def step_with_cache(self, state, cache, h, dW, t):
        new, cache, solve = super().step_with_cache(state, cache, h, dW, t)
        off = jax.tree.map(lambda leaf: leaf * (1 + 1e-4 * jnp.sin(1e3 * leaf)), new.q)
        return State(off, new.p, new.ledger), cache, solve


def with_gradient(factor: float) -> bm.System:
    """A potential whose derivative, given by hand, is off by a factor: still a gradient."""

    @jax.custom_jvp
    def U(q):
        return 0.5 * q @ q + 0.25 * jnp.sum(q**4)

    U.defjvp(lambda primals, tangents: (U(*primals), factor * (primals[0] + primals[0] ** 3) @ tangents[0]))
    return bm.mechanical(bm.Euclidean(2), potential=U)


def torque_in_the_wrong_frame() -> bm.System:
    """Torques in the axes of the body, said to be in those of space."""
    energy = lambda x, R: jnp.sum(R[:, 2, 2]) + 0.5 * jnp.sum(x**2)
    in_space = lambda R: -jnp.cross(jnp.einsum("kij,j->ki", R, jnp.array([0.0, 0.0, 1.0])), jnp.array([0.0, 0.0, 1.0]))
    forces = lambda x, R: (-x, jnp.einsum("kji,kj->ki", R, in_space(R)))
    return bm.rigid_bodies(mass=[1.0], inertia=[[1.0, 2.0, 2.5]], potential=bm.with_forces(energy, forces))


def curled() -> bm.System:
    return bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.5 * q @ q, force=lambda q, v: 0.1 * jnp.array([-q[1], q[0]]))


def discrete(potential: float = 1.0, noise: float = 1.0) -> bm.Discrete:
    """A trapezoid action of one's own, with a part of the potential or of the noise of its system."""
    U, gamma = lambda q: jnp.cos(q[0]) + q[0] * q[1] ** 2, lambda q: jnp.array([jnp.sin(q[0] + q[1])])
    system = bm.mechanical(bm.Euclidean(2), potential=U, noise=gamma)

    def S_d(q0, q1, h, dW):
        v = (q1 - q0) / h
        return h * 0.5 * v @ v - potential * h * 0.5 * (U(q0) + U(q1)) + noise * 0.5 * (gamma(q0) + gamma(q1)) @ dW

    return bm.Discrete(bm.Euclidean(2), S_d, system=system)


class Counting:
    """A potential that changes each time it is looked at by Python, as one that draws random numbers or reads the clock would."""

    def __init__(self):
        self.calls = 0

    def __call__(self, q):
        self.calls += 1
        return (1 + 1e-3 * self.calls) * 0.5 * q @ q


class WrongLimit(bm.EulerMaruyama):
    """Of first order, towards something else."""

    def advance(self, state, h, dW, t):
        new, solve = super().advance(state, h, dW, t)
        return State(new.q, new.p + 0.01 * h), solve


# Generators.


class Strong(bm.Wiener):
    """Increments a tenth too large."""

    def draw(self, trajectory, step, channels, h, dtype=float, clipped=None):
        return 1.1 * super().draw(trajectory, step, channels, h, dtype, clipped)


class Cut(bm.Wiener):
    """Increments cut at three standard deviations."""

    def draw(self, trajectory, step, channels, h, dtype=float, clipped=None):
        most = 3 * jnp.sqrt(h)
        return jnp.clip(super().draw(trajectory, step, channels, h, dtype, clipped), -most, most)


class EqualChannels(bm.Wiener):
    """All channels are the first."""

    def draw(self, trajectory, step, channels, h, dtype=float, clipped=None):
        made = super().draw(trajectory, step, channels, h, dtype, clipped)
        return jnp.broadcast_to(made[:, :1], made.shape)


class Repeating(bm.Wiener):
    """Every 32 steps the same again."""

    def draw(self, trajectory, step, channels, h, dtype=float, clipped=None):
        return super().draw(trajectory, (step[0] % np.uint32(32), step[1]), channels, h, dtype, clipped)


class Twins(bm.Wiener):
    """Trajectories 2n and 2n + 1 are the same."""

    def draw(self, trajectory, step, channels, h, dtype=float, clipped=None):
        return super().draw((trajectory[0] // np.uint32(2), trajectory[1]), step, channels, h, dtype, clipped)


class Mirrored(bm.Wiener):
    """Trajectories 2n and 2n + 1 are opposite."""

    def draw(self, trajectory, step, channels, h, dtype=float, clipped=None):
        made = super().draw((trajectory[0] // np.uint32(2), trajectory[1]), step, channels, h, dtype, clipped)
        return jnp.where(trajectory[0] % np.uint32(2) == 0, made, -made)


class Smooth(bm.Wiener):
    """Each step remembers a tenth of the one before it."""

    def draw(self, trajectory, step, channels, h, dtype=float, clipped=None):
        made = super().draw(trajectory, step, channels, h, dtype, clipped)
        return (made + 0.1 * jnp.roll(made, 1, 0)) / np.sqrt(1.01)


class HotStarts(bm.Wiener):
    """Normals of Maxwell starts that make them a fifth too hot."""

    def normals(self, trajectory, count, stream, dtype=float):
        return np.sqrt(1.2) * super().normals(trajectory, count, stream, dtype)
