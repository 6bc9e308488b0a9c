"""What only another process can show: what an import loads, programs kept on disk, several devices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")

RUN = """
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import bismut as bm
scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.sum(q**4), noise=lambda q: jnp.sin(q)))
start = scheme.start(jnp.ones(1), temperature=1.0)
observe = {"energy": bm.energy, "far": bm.extremes(lambda s: s.q[0], every=2), "where": bm.histogram(lambda s: s.q[0], range=(-2, 2), every=5)}
run = lambda **s: bm.simulate(scheme, start, step=0.02, steps=40, trajectories=22, seed=3, every=10, observe=observe, **({"mode": "xla"} | s))
"""


def python(code: str, **environment: str) -> str:
    full = {**os.environ, "PYTHONPATH": SOURCE, "JAX_PLATFORMS": "cpu", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light():
    heavy = "['xarray', 'zarr', 'matplotlib', 'dask', 'pandas', 'scipy']"
    assert python(f"import sys, bismut; print([m for m in {heavy} if m in sys.modules])").strip() == "[]"


@pytest.mark.long
def test_two_devices_give_what_one_gives():
    """Each device runs the program of a block: the final states agree to the bit with one device, and so do counts and extremes."""
    compare = """
assert jax.local_device_count() == 2
two, one = run(block=4), run(devices=1, block=4)
assert np.array_equal(two.final.q, one.final.q) and np.array_equal(two.final.p, one.final.p)
assert np.array_equal(two.where.counts.values, one.where.counts.values)
assert float(two.far.max) == float(one.far.max)
assert np.allclose(two.energy.mean.values, one.energy.mean.values, rtol=1e-13)
assert np.array_equal(two.energy.count.values, one.energy.count.values)
print("same")
"""
    assert python(RUN + compare, XLA_FLAGS="--xla_force_host_platform_device_count=2").strip() == "same"
