"""What a new process does not wait for: packages that a simulation has no use for, and programs of XLA for what is asked once."""

import subprocess
import sys
import textwrap

import pytest


def _printed(program: str) -> list[str]:
    """The words that a program prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_simulation_imports_neither_statistics_nor_tables_nor_checks():
    """A pendulum, from the import to its result."""
    loaded = _printed(
        """
        import sys
        import jax; jax.config.update("jax_enable_x64", True)
        import bismut as bm
        import jax.numpy as jnp
        assert not [name for name in sys.modules if name.startswith("bismut.")], "import bismut alone imports no part of it"
        system = bm.mechanical(bm.Circle(), potential=lambda q: -jnp.cos(q), noise=lambda q: jnp.sin(q)[None])
        scheme = bm.VariationalEuler(system)
        start = scheme.start(0.5, velocity=0.0)
        assert bm.simulate(scheme, start, step=0.01, steps=10, trajectories=8, progress=False).outcome.ok
        print(*sys.modules)
        """
    )
    assert {"bismut.ensembles", "bismut.engines.native.engine", "llvmlite.binding"} <= set(loaded)  # it ran, and says what it loaded
    parts = ("stats", "special", "spatial", "optimize", "linalg", "sparse", "interpolate", "ndimage")
    unwanted = {*(f"scipy.{part}" for part in parts), "xarray", "pandas", "matplotlib", "k3d", "dask", "ase"}
    unwanted |= {f"bismut.{part}" for part in ("response", "samplers", "findings", "sharing", "views", "store", "figures", "gallery")}
    assert not unwanted & set(loaded)


def test_systems_of_loops_and_constraints_are_built_without_xla():
    """What building and starting them asks is computed in NumPy: each program of XLA would take 30 ms."""
    compiled = _printed(
        """
        import jax; jax.config.update("jax_enable_x64", True)
        from jax import monitoring
        from bismut.registry import GALLERY

        compiled = []
        monitoring.register_event_duration_secs_listener(lambda event, *_, **named: compiled.append(event) if "backend_compile" in event else None)
        for name in ("magnetic-dipoles", "pendulum-chain", "rigid-triatomic", "spacecraft"):
            entry = GALLERY[name]
            entry.start(entry.scheme(entry.build()))
            print(len(compiled))
        jax.numpy.eye(7)
        print(len(compiled) > 0)
        """
    )
    assert compiled == ["0", "0", "0", "0", "True"]


@pytest.mark.parametrize("more", ["store='top.run'", "certify=True", "until={'energy': 1e9}, executor=bm.Threads(1)"])
def test_a_run_finds_what_its_arguments_need(tmp_path, monkeypatch, more):
    """In a process that has used no other public name: what is imported late must not have to be imported by something else."""
    monkeypatch.chdir(tmp_path)
    assert _printed(
        f"""
        import jax; jax.config.update("jax_enable_x64", True)
        import bismut as bm
        scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: q @ q))
        start = scheme.start([1.0], velocity=[0.0])
        print(bm.simulate(scheme, start, step=0.1, steps=10, trajectories=2, seed=1, observe={{"energy": bm.energy}}, {more}).outcome.ok)
        """
    ) == ["True"]
