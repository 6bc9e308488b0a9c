"""One hash on every processor: the published bits, in code for each level of x86-64 and of each width.

A level that this processor lacks cannot be run and is skipped. SSE2 has no fused multiply-add, so there it is plain arithmetic alone.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bismut
import bismut.ensembles
from bismut.engines.native import target
from bismut.errors import DomainError
from tests.machines import catalogue
from tests.machines.recording import compiled_for, made_for, recorded

QUICK = "heavy-top", "metropolised", "bath-on-a-group", "single-precision"
LEVELS = {  # with the lanes of two, one and one of its registers
    "x86-64-v4": {"float64": 16, "float32": 32},
    "x86-64-v3": {"float64": 4, "float32": 8},
    "x86-64": {"float64": 2, "float32": 4},
}
ALL = [(level, arithmetic) for level in LEVELS for arithmetic in catalogue.ARITHMETICS if (level, arithmetic) != ("x86-64", "fused")]


def test_at_least_twelve_systems_are_published_in_both_arithmetics():
    published = catalogue.published()
    assert list(published) == catalogue.names()
    assert len(published) >= 12
    states = [published[name][arithmetic]["states"] for name in published for arithmetic in catalogue.ARITHMETICS]
    assert len(set(states)) == len(states)  # an arithmetic that is not obeyed would give the same


@pytest.mark.parametrize("arithmetic", catalogue.ARITHMETICS)
@pytest.mark.parametrize("name", QUICK)
def test_published_bits_here(name, arithmetic):
    assert catalogue.digests(catalogue.run(name, arithmetic)) == catalogue.published()[name][arithmetic]


def can_run(level: str) -> bool:
    return all(target._host(None)[2][feature] for feature in target._LEVELS[level])


def check(name: str, level: str, arithmetic: str) -> None:
    if not can_run(level):
        pytest.skip(f"this processor has no {level}")
    with made_for(LEVELS[level], level):
        assert target.processor().startswith(f"{level} (")
        assert catalogue.digests(catalogue.run(name, arithmetic)) == catalogue.published()[name][arithmetic]


@pytest.mark.parametrize(("level", "arithmetic"), ALL)
def test_published_bits_of_one_system_at_every_level(level, arithmetic):
    check("metropolised", level, arithmetic)


@pytest.mark.machines
@pytest.mark.parametrize(("level", "arithmetic"), ALL)
@pytest.mark.parametrize("name", catalogue.names())
def test_published_bits_at_every_level(name, level, arithmetic):
    check(name, level, arithmetic)


def test_blocks_and_threads_decide_nothing():
    """States to the bit; statistics of another partition to round-off, so blocks stay what they are there."""
    whole = catalogue.digests(catalogue.run("metropolised", "plain"))
    cut = catalogue.digests(catalogue.run("metropolised", "plain", block=5))
    assert cut["states"] == whole["states"]


def test_code_for_wide_registers_uses_them():
    """What this processor may not be able to run can be made, and looked at."""
    program = recorded("metropolised", "fused")[0][0]
    assert compiled_for("x86_64-linux-gnu", program.text, cpu="x86-64-v4") != compiled_for("x86_64-linux-gnu", program.text, cpu="x86-64-v3")


def test_a_level_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setenv("BISMUT_PROCESSOR", "x86-64-v9")
    with pytest.raises(DomainError, match="must be one of x86-64, x86-64-v2"):
        target.processor()


# What NumPy and the C library would do with other processors: their own choice of code is turned off, as far as each lets one.

EXTENSIONS = np.show_config(mode="dicts")["SIMD Extensions"]  # pyright: ignore[reportOptionalSubscript]: by levels, X86_V3 and X86_V4 in NumPy 2.4
PLAIN_HOSTS = {
    "NumPy for the least processor": {"NPY_DISABLE_CPU_FEATURES": " ".join(EXTENSIONS.get("found", []))},
    "libm without FMA": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX"},
    "BLAS for another processor": {"OPENBLAS_CORETYPE": "Prescott"},
}


def in_a_process(environment: dict, *words: str) -> subprocess.CompletedProcess:
    inherited = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=inherited)


def compared_in_a_process(environment: dict, *names: str) -> subprocess.CompletedProcess:
    return in_a_process(environment, "-m", "tests.machines.catalogue", *names)


def test_numpy_is_held_to_its_baseline():
    """Every level that it found here is off, and none is left on."""
    if not EXTENSIONS.get("found"):
        pytest.skip("NumPy found nothing here beyond its baseline")
    there = in_a_process(
        PLAIN_HOSTS["NumPy for the least processor"], "-c", "import numpy; print(numpy.show_config(mode='dicts')['SIMD Extensions'])"
    )
    assert "'found'" not in there.stdout
    assert "'not found'" in there.stdout, there.stderr


@pytest.mark.long
@pytest.mark.parametrize("host", list(PLAIN_HOSTS)[:1])
def test_bits_do_not_depend_on_what_numpy_chooses(host):
    there = compared_in_a_process(PLAIN_HOSTS[host], "metropolised", "bath-on-a-group")
    assert there.returncode == 0, there.stdout + there.stderr


CHOSEN = {"einsum", "dot", "matmul", "inner", "vdot", "tensordot", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh"}
CHOSEN |= {"arctan2", "arccos", "arcsin", "power", "cbrt", "hypot", "fft", "cov", "corrcoef", "interp", "polyfit", "logaddexp"}
METHODS = {"dot", "vdot", "matmul"}  # of arrays
# Functions of a state, which the engine makes into code of its own: products there are bismut's.
TRACED = {"look", "value", "of_point", "_directions"}


def chosen_by_processors(text: str) -> set[str]:
    """What a module asks NumPy and SciPy for that is other code on other processors. Norms along an axis are products, a sum and a root; without one
    they are BLAS. Trees of SciPy only find pairs, by products, sums and comparisons."""
    tree = ast.parse(text)
    traced = {id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name in TRACED for node in ast.walk(f)}
    norms = {
        id(call.func)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "np.linalg.norm" and [word.arg for word in call.keywords] == ["axis"]
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, _, rest = ast.unparse(node).partition(".")
            named = rest.replace(".", "").isidentifier()  # and not a method of what a call returns
            wrong = root != "jnp" and node.attr in METHODS
            wrong |= root == "np" and named and (rest in CHOSEN or (rest.startswith("linalg.") and id(node) not in norms))
            wrong |= root == "scipy" and named and not "spatial.KDTree".startswith(rest)
            found |= {ast.unparse(node)} if wrong else set()
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult) and id(node) not in traced:
            found.add("@")
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("numpy", "scipy"):
            found.add(f"from {node.module}")  # by which the rules above would not know it
    return found


def test_statistics_ask_numpy_for_nothing_that_processors_choose():
    """Sums, products and roots alone: einsum, BLAS, LAPACK and transcendental functions are other code on other processors."""
    folder = Path(bismut.ensembles.__file__).parent
    files = [*sorted((folder / "observers").glob("*.py")), folder / "moments.py"]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    assert sum(text.count("np.") for text in texts.values()) > 100
    assert {name: found for name, text in texts.items() if (found := chosen_by_processors(text))} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("y = A @ x", {"@"}),
        ("def close(self):\n    x @= A", {"@"}),
        ("def value(self, state):\n    return state.q @ state.q", set()),
        ("x.T.dot(y)", {"x.T.dot"}),
        ("np.exp(x)", {"np.exp"}),
        ("np.linalg.inv(A)", {"np.linalg.inv"}),
        ("np.linalg.norm(x)", {"np.linalg.norm"}),
        ("np.linalg.norm(x, axis=1)", set()),
        ("scipy.special.erf(x)", {"scipy.special.erf", "scipy.special"}),
        ("scipy.spatial.KDTree(x).query_pairs(1.0)", set()),
        ("from scipy import linalg", {"from scipy"}),
    ],
)
def test_what_processors_choose_is_seen(text, found):
    assert chosen_by_processors(text) == found


@pytest.mark.machines
@pytest.mark.parametrize("host", PLAIN_HOSTS)
def test_no_published_bit_depends_on_what_numpy_chooses(host):
    there = compared_in_a_process(PLAIN_HOSTS[host])
    assert there.returncode == 0, there.stdout + there.stderr
