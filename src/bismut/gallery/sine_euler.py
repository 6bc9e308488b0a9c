"""Vorticity on the torus as a matrix: Euler's equations truncated by the sine bracket, with transport noise.

    dW = [W, P] dt + Σ_i [W, s_i E_i] ∘ dW_i,        W = Σ_n ω_n T_n ∈ su(N),   P = ∂H/∂W,   H = ½ Σ_n |ω_n|²/|n|²

Zeitlin's truncation of two-dimensional ideal flow (Physica D 49, 353 (1991)): the modes n = (n₁, n₂), |n_i| ≤ N/2, of a vorticity are the
coefficients of clock and shift matrices T_n, whose commutators are [T_m, T_n] ∝ sin(2π m × n/N) T_{m+n}, and tend to the Poisson bracket of
functions on the torus as N grows. The N − 1 traces tr W^k stand for the integrals of powers of the vorticity, and every path keeps them all: the
spectrum of W is what an incompressible flow cannot change. Noise carries vorticity about by fixed random stream functions E_i, long waves, as
unresolved eddies would (Holm, Proc. R. Soc. A 471 (2015)); it changes energy, and no Casimir. Without noise the energy stays within a bound.
"""

import jax.numpy as jnp
import numpy as np

from bismut.actions import HamiltonianMidpoint
from bismut.drawing import Drawing, Part
from bismut.gallery.entry import Entry, Fact, Trial
from bismut.gallery.measures import spread
from bismut.mechanics import LiePoisson, State, System
from bismut.spaces import su
from bismut.spaces.unitary import parts, spectrum

_WAVES = ((1, 0), (0, 1), (1, 1), (1, -1))  # of the noise, cosine and sine of each


def sine_euler(modes: int = 8, noise: float = 0.1, waves: int = 2) -> System:
    """`modes` N, up to 32; `noise` s on cosines and sines of the first `waves` of the long waves (1, 0), (0, 1), (1, 1), (1, −1)."""
    inverse = jnp.asarray(inverse_laplacian(modes))
    carried = jnp.asarray(np.stack([stream(modes, n, phase) for n in _WAVES[:waves] for phase in (0.0, np.pi / 2)]))

    def energy(W):
        skew, even = (diagonals(part) for part in parts(W))
        bent = lambda part: jnp.einsum("dkj,dj->dk", inverse.astype(W.dtype), part)
        return 0.5 * (jnp.sum(skew * bent(skew)) + jnp.sum(even * bent(even)))

    return LiePoisson(
        su(modes),
        energy,
        noise=lambda W, parameters: parameters["noise"] * jnp.tensordot(carried.astype(W.dtype), W, axes=2),
        parameters={"noise": noise},
    )


def diagonals(M):
    """D[d, k] = M[k, k + d mod N]: a stream of wave number n₂ = d along the diagonals."""
    n = M.shape[0]
    k, d = np.arange(n)[None, :], np.arange(n)[:, None]
    return M[np.broadcast_to(k, (n, n)), (k + d) % n]


def inverse_laplacian(N: int) -> np.ndarray:
    """C[d, k, j]: the circulant of each diagonal that divides mode n = (m, d) by |n|², numbers of waves taken between −N/2 and N/2, (0, 0) left
    out."""
    waves = (np.arange(N) + N // 2) % N - N // 2
    size = (waves[None, :] ** 2 + waves[:, None] ** 2).astype(float)  # (d, m)
    weight = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
    k = np.arange(N)
    phase = np.exp(2j * np.pi * np.einsum("m,kj->mkj", waves, k[:, None] - k[None, :]) / N)
    return np.einsum("dm,mkj->dkj", weight, phase).real / N


def stream(N: int, n: tuple[int, int], phase: float = 0.0) -> np.ndarray:
    """cos(n·x − phase) as a matrix M of su(N), of unit length: e^{iφ} T_n, made skew-Hermitian."""
    k = np.arange(N)
    T = np.zeros((N, N), complex)
    T[k, (k + n[1]) % N] = np.exp(2j * np.pi * n[0] * (k + 0.5 * n[1]) / N)
    X = 1j * (np.exp(-1j * phase) * T + np.conj(np.exp(-1j * phase) * T).T)
    M = X.real + X.imag
    return M / np.linalg.norm(M)


def vorticity(W: np.ndarray, points: int = 48) -> np.ndarray:
    """ω(x) on a grid of the torus, from matrices W (..., N, N)."""
    N = W.shape[-1]
    A, S = 0.5 * (W - np.swapaxes(W, -1, -2)), 0.5 * (W + np.swapaxes(W, -1, -2))
    hermitian = S - 1j * A
    k, waves = np.arange(N), (np.arange(N) + N // 2) % N - N // 2
    field = np.zeros((*W.shape[:-2], points, points))
    x = 2 * np.pi * np.arange(points) / points
    for d in waves:
        diagonal = hermitian[..., k, (k + d) % N]
        for m in waves:
            c = (diagonal * np.exp(-2j * np.pi * m * (k + 0.5 * d) / N)).mean(-1)
            field += (c[..., None, None] * np.exp(1j * (m * x[:, None] + d * x[None, :]))).real
    return field


def picture(system: System, states) -> Drawing:
    """The vorticity as a relief over the torus: balls in a square that rise and sink with it."""
    W = np.asarray(states[1], float)
    relief = vorticity(W, 24)
    x = np.linspace(-1, 1, 24, endpoint=False)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(1, -1, 2)
    height = 0.4 * relief.reshape(len(W), -1, 1) / max(float(np.abs(relief[0]).max()), 1e-300)
    return Drawing(np.concatenate([np.broadcast_to(grid, (len(W), grid.shape[1], 2)), height], -1), None, [Part("ball", 0.03)])


def start(scheme):
    """A few long waves, so that vorticity winds up into shorter ones."""
    N = scheme.space.group.n
    W = stream(N, (1, 0)) + 0.8 * stream(N, (0, 1), 0.7) + 0.6 * stream(N, (1, 1), 0.2) + 0.4 * stream(N, (2, -1), 1.0)
    return scheme.start(momentum=np.asarray(W))


def _energy_error(trial: Trial) -> float:
    from bismut.ensembles import trajectory

    scheme = HamiltonianMidpoint(sine_euler(noise=0.0, waves=1))
    begin = start(scheme)
    assert isinstance(begin, State)
    run = trajectory(scheme, begin, step=0.2, steps=1000, every=50)
    energies = np.array([float(scheme.system.energy(State((), p))) for p in run.p])
    return float(np.abs(energies / energies[0] - 1).max())


ENTRY = Entry(
    "sine-euler",
    __doc__,
    sine_euler,
    start=start,
    scheme=HamiltonianMidpoint,
    step=0.1,
    facts=(
        Fact("tr W², tr W³ and tr W⁴ stay, whatever the noise", lambda trial: spread(trial, lambda state: spectrum(state.p)), 0.0, 1e-12),
        Fact("without noise the energy stays within 0.1 % over 1000 steps of 0.2", _energy_error, 0.0, 1e-3),
    ),
    picture=picture,
)
