"""A trap pulled through a bath: the work of single pulls varies, and yet ⟨exp(−W/kT)⟩ = exp(−ΔF/kT) (Jarzynski's equality; here ΔF = 0)."""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np

import bismut as bm

smoke = "--smoke" in sys.argv
kT, k, friction, time = 1.0, 2.0, 0.8, 0.4 if smoke else 4.0
trap = bm.mechanical(  # a potential may name the time
    bm.Euclidean(1),
    potential=lambda q, t, parameters: 0.5 * k * (q[0] - parameters["speed"] * t) ** 2,
    parameters={"speed": 1.0},
)
scheme = bm.Langevin(trap, temperature=kT, friction=friction)
trajectories, speeds = 200 if smoke else 40_000, [0.25, 0.5, 1.0]
spread = np.sqrt(kT / k) * np.random.default_rng(1).standard_normal((trajectories, 1))
result = bm.simulate(
    scheme,
    scheme.start(spread, temperature=kT, ledger=True),  # in equilibrium, and keeping books
    step=0.02,
    steps=round(time / 0.02),
    trajectories=trajectories,
    seed=3,
    observe={"work": bm.work, "weight": lambda state: jnp.exp(-state.ledger.work / kT)},
    sweep={"speed": speeds},
)

# In the frame of the trap the mean follows a damped oscillator, x″ = −k x − c (x′ + v), and ⟨W⟩ = −k v ∫⟨x⟩ dt.
t = np.linspace(0.0, time, 20_001)
w = np.sqrt(k - friction**2 / 4)
lag = friction / k - np.exp(-friction * t / 2) * (friction / k * np.cos(w * t) + (friction**2 / k / 2 - 1) / w * np.sin(w * t))
print("speed   mean work            exact    ⟨exp(−W/kT)⟩        exact")
for i, speed in enumerate(speeds):
    work, weight = (f"{float(result[name].mean[i, -1]):7.4f} ± {float(result[name].stderr[i, -1]):.4f}" for name in ("work", "weight"))
    print(f"{speed:5.2f}   {work}   {k * speed**2 * np.trapezoid(lag, t):7.4f}    {weight}    1")
