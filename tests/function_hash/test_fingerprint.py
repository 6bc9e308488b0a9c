"""Equal functions have equal fingerprints in every process; functions that do something else have others."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bismut.function_hash import fingerprint

ROOT = Path(__file__).parents[2]


def made(k, code="lambda q: k * q + shape.size"):
    return eval(code, {"k": k, "shape": np.ones((2, 2)), "jnp": jnp})


def test_what_is_written_again_is_the_same():
    first = made(2.0)
    assert fingerprint(first) == fingerprint(made(2.0))
    assert fingerprint(first) == fingerprint(made(2.0, "\n\n(lambda q: k * q + shape.size)  # elsewhere"))


def test_what_computes_something_else_is_another():
    codes = ["lambda q: k * q + shape.size", "lambda q: k * q - shape.size", "lambda q: k * q + shape.ndim", "lambda q, x=1: k * q + shape.size"]
    found = {fingerprint(made(k, code)) for k in (2.0, 2.5, 2) for code in codes}
    assert len(found) == 12
    assert fingerprint(np.ones(3)) != fingerprint(np.ones((3, 1)))
    assert fingerprint(jax.jit(made(2.0))) != fingerprint(jax.jit(made(2.5)))
    assert fingerprint(jnp.sin) != fingerprint(jnp.cos)


def test_what_cannot_be_looked_into_has_none():
    with open(os.devnull) as file:
        assert fingerprint(lambda q: file) is None


def test_another_process_finds_the_same():
    imports = "from bismut.function_hash import fingerprint\nfrom tests.function_hash.test_fingerprint import made\n"
    code = imports + "print(fingerprint(({made(2.0)}, made(2.5))))"
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONHASHSEED": "7"}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert printed.strip() == fingerprint(({made(2.0)}, made(2.5)))
