"""Whatever version of JAX is installed: the native engine computes, and it computes what XLA does.

|z_native − z_xla| ≤ 1e−9 (1 + |z|) after ten steps

Most systems are of `make test-newest`, which runs all of this file with several versions.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.body_loops import Pair, pairs
from bismut.gallery import entries
from bismut.requirements import TESTED, doubt_about_jax
from tests.engines.functions import evaluate


def _gallery(name):
    found = entries()[name]
    scheme = found.scheme(found.build())
    return scheme, found.start(scheme), found.step


def _in_a_bath(name):
    found = entries()[name]
    scheme = bm.Langevin(found.build(), temperature=0.5, friction=1.0)
    return scheme, found.start(scheme), found.step


def _implicit():
    system = bm.System(bm.Euclidean(1), lambda q, v: 0.5 * (1 + 0.3 * jnp.sum(q**2)) * jnp.sum(v**2) - jnp.sum(q**4), jnp.sin)
    scheme = bm.Midpoint(system)
    return scheme, scheme.start(jnp.array([0.4]), velocity=jnp.array([-0.7])), 0.05


GALLERY = (
    *("ballistic-pendulum", "double-well", "free-rigid-body", "heavy-top", "heavy-top-reduced", "kepler", "kubo-oscillator", "magnetic-dipoles"),
    *("patchy-disks", "pendulum", "pendulum-chain", "rigid-body-reduced", "spherical-pendulum", "spring-lattice", "synchrotron"),
)
CASES = {
    **{name: lambda name=name: _gallery(name) for name in GALLERY},
    "pendulum in a bath": lambda: _in_a_bath("pendulum"),
    "dipoles in a bath": lambda: _in_a_bath("magnetic-dipoles"),
    "implicit": _implicit,
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "implicit" else pytest.mark.slow) for name in CASES])
def test_the_native_engine_computes_what_xla_does(name):
    scheme, start, step = CASES[name]()
    settings = {"step": step, "steps": 10, "trajectories": 3, "seed": 5, "progress": False}
    ours, xla = (bm.simulate(scheme, start, mode=mode, **settings) for mode in ("auto", "xla"))
    assert ours.provenance.mode == "native"
    for a, b in zip(jax.tree.leaves(ours.final), jax.tree.leaves(xla.final), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


PROJECT = Path(__file__).parents[2] / "pyproject.toml"
TABLE = np.linspace(-3.0, 3.0, 13)
FUNCTIONS = {
    # Each is, in some release, a primitive of another name, with other parameters, or one that is high until it is lowered.
    "scan": lambda x: jax.lax.scan(lambda c, row: (c + row * x[0], c * row), x[1], x)[0],
    "scan of what is shared": lambda x: jax.lax.scan(lambda c, row: (jnp.sin(c + x), (c[0], row)), x, None, length=7)[0],
    "while": lambda x: jax.lax.while_loop(lambda c: jnp.sum(c[0] ** 2) < 50, lambda c: (c[0] * 1.5 + x[1], c[1] + 1), (x, 0))[0],
    "cond": lambda x: jax.lax.cond(x[0] > 0, lambda y: y**2, jnp.sin, x),
    "remat": jax.grad(lambda y: jnp.sum(jax.checkpoint(lambda z: jnp.sin(z) ** 2)(y))),
    "custom_jvp": lambda x: jax.nn.softplus(x) + jax.grad(lambda y: jnp.sum(jax.nn.relu(y)))(x),
    "linear_solve": lambda x: jax.lax.custom_linear_solve(lambda v: 2 * v, x, lambda f, b: b / 2, lambda f, b: b / 2),
    "pairs": jax.grad(lambda y: pairs(lambda a, b, _: Pair(total=jnp.cos(a - b * a)), y).total),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_read_alike_in_every_release(name):
    x = np.random.default_rng(3).normal(size=(5, 3))
    function = FUNCTIONS[name]
    np.testing.assert_allclose(evaluate(function, x), jax.jit(jax.vmap(function))(x), rtol=1e-12, atol=1e-12)


def test_loops_may_hold_what_jax_lowers_before_it_compiles():
    """`searchsorted` is high from 0.12 on, so a loop that holds it is."""
    x = np.random.default_rng(3).normal(size=(4, 2))
    energy = lambda x: pairs(lambda a, b, _: Pair(total=jnp.interp(a[0] - b[0], TABLE, TABLE**2) + jnp.searchsorted(TABLE, b[1])), x).total
    i, j = np.triu_indices(4, 1)
    expected = sum(np.interp(x[i, 0] - x[j, 0], TABLE, TABLE**2) + np.searchsorted(TABLE, x[j, 1]))
    for found in (energy(x), jax.jit(energy)(x), jax.jit(jax.vmap(energy))(x[None])[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.grad(energy))(x), jax.grad(energy)(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("version", "said"), [("0.10.1", None), ("0.11.2", None), (TESTED, None), ("0.11.0", "excludes"), ("0.10.2", "excludes"), ("99.1", "tested")]
)
def test_a_version_that_is_excluded_or_newer_than_tested_is_named_with_the_remedy(version, said):
    (required,) = (line for line in tomllib.loads(PROJECT.read_text())["project"]["dependencies"] if re.match(r"jax\W", line))
    doubt = doubt_about_jax(version, required)
    assert (doubt is None) if said is None else (said in doubt and version in doubt and "pip install" in doubt)


def test_the_warning_is_given_once():
    code = "import importlib.metadata as m, warnings; true = m.version; m.version = lambda name: '99.1' if name == 'jax' else true(name)\n"
    code += "import bismut as bm; bm.System; bm.Verlet"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr.count("RuntimeWarning") == 1


def test_one_file_reads_jaxprs():
    """What jax promises nothing about is met in one file. The loops beside it are primitives of jax and register themselves; and a user's function is
    rolled up before anything is derived, which is when it is a jaxpr."""
    home = Path(bm.__file__).parent
    knowing = {
        str(path.relative_to(home))
        for path in home.rglob("*.py")
        if re.search(r"jax\.interpreters|from jax\._src|make_jaxpr|ClosedJaxpr|jaxpr_as_fun", path.read_text())
    }
    assert knowing == {"programs/jaxprs.py", "programs/autobatching.py", "body_loops/loop.py"}
