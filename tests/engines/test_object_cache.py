"""Machine code on disk: found again by another process, never believed when damaged, bounded, and never a reason to fail."""

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from bismut.engines.native import object_cache
from bismut.engines.native.object_cache import machine_code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "programs"
    monkeypatch.setenv("BISMUT_PROGRAMS", str(place))
    return place


def compiler(code: bytes = b"machine code"):
    calls = []

    def compile_code() -> bytes:
        calls.append(1)
        return code

    return compile_code, calls


def test_code_is_compiled_once_for_each_text_and_machine(folder):
    compile_code, calls = compiler()
    for identity, text in [("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("b", "x")]:
        assert machine_code(identity, text, compile_code) == b"machine code"
    assert len(calls) == 3
    assert len(list(folder.iterdir())) == 3
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:40] + b"\x90" + b[41:], lambda b: b[1:] + b[:1], lambda b: b[:20]])
def test_a_damaged_file_is_compiled_again_and_replaced(folder, damage):
    compile_code, calls = compiler()
    machine_code("a", "x", compile_code)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert machine_code("a", "x", compile_code) == b"machine code"
    assert len(calls) == 2
    assert file.read_bytes() == whole


@pytest.mark.parametrize("take", [shutil.copy, os.replace], ids=["copied", "renamed"])
def test_a_file_under_the_name_of_another_is_compiled_again(folder, take):
    """Its bytes are whole, but they are those of another module."""
    first, calls = compiler(b"code of x")
    machine_code("a", "x", first)
    machine_code("a", "y", lambda: b"code of y")
    x, y = (folder / hashlib.sha256(f"a\0{text}".encode()).hexdigest() for text in "xy")
    whole = x.read_bytes()
    take(y, x)
    assert machine_code("a", "x", first) == b"code of x"
    assert len(calls) == 2
    assert x.read_bytes() == whole


def test_a_folder_that_others_can_write_to_is_not_used(folder):
    folder.mkdir()
    folder.chmod(0o777)
    compile_code, calls = compiler()
    for _ in range(2):
        machine_code("a", "x", compile_code)
    assert len(calls) == 2
    assert not list(folder.iterdir())


@pytest.mark.parametrize("place", ["", "off", "/dev/null/programs", "/proc/programs"])
def test_without_a_folder_everything_works(monkeypatch, place):
    monkeypatch.setenv("BISMUT_PROGRAMS", place)
    compile_code, calls = compiler()
    assert machine_code("a", "x", compile_code) == machine_code("a", "x", compile_code) == b"machine code"
    assert len(calls) == 2


def test_what_was_not_used_for_long_goes_first(folder, monkeypatch):
    monkeypatch.setattr(object_cache, "LIMIT", 10_000)
    big = compiler(b"c" * 2_000)[0]
    for k in range(4):
        machine_code("a", str(k), big)
        file = folder / hashlib.sha256(f"a\0{k}".encode()).hexdigest()
        os.utime(file, (k, k))
    machine_code("a", "0", big)  # used now
    machine_code("a", "4", big)
    names = {file.name for file in folder.iterdir()}
    kept = [k for k in range(5) if hashlib.sha256(f"a\0{k}".encode()).hexdigest() in names]
    assert kept == [0, 3, 4]


def test_many_at_once_agree(folder):
    compile_code, _ = compiler(b"c" * 100_000)
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda k: machine_code("a", str(k % 3), compile_code), range(60)))
    assert set(codes) == {b"c" * 100_000}
    assert len(list(folder.iterdir())) == 3


RUN = """
import jax; jax.config.update("jax_enable_x64", True)
import bismut as bm, jax.numpy as jnp
from bismut.engines.native import target
if {cached}:
    def refuse(*_): raise AssertionError("LLVM was called")
    target._compile = refuse
links = lambda q: jnp.array([q[0] @ q[0], (q[1] - q[0]) @ (q[1] - q[0])]) - 1.0
chain = bm.mechanical(bm.Euclidean(2) ** 2, potential=lambda q: q[1, 1], constraint=links)
scheme = bm.Verlet(chain)
start = scheme.start(jnp.array([[1.0, 0.0], [2.0, 0.0]]), velocity=jnp.zeros((2, 2)))
result = bm.simulate(scheme, start, step=0.01, steps=20, trajectories=3, seed=1, mode="native")
print(result.final.q.tobytes().hex())
"""


@pytest.mark.long
def test_another_process_finds_the_code_and_gives_the_same_bits(folder):
    """Texts do not depend on the seed of Python's hashes."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", RUN.format(cached=seed > 1)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    ]
    assert outputs[0] == outputs[1]
