"""The bits of every published run on another processor: 64-bit ARM, emulated by qemu. `make test-machines` installs what this needs.

Each call of machine code is recorded here, the same IR compiled for aarch64, and the call made again there: all that it leaves in memory must be the
same. Hashes of the recorded run are the published ones, so what is replayed is what is promised.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.machines import catalogue
from tests.machines.recording import compiled_for, recorded, table_module, write_calls

COMPILER, QEMU, LIBRARIES = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
TRIPLE = "aarch64-linux-gnu"

pytestmark = [
    pytest.mark.machines,
    pytest.mark.skipif(not (shutil.which(COMPILER) and shutil.which(QEMU)), reason="needs qemu-user and gcc-aarch64-linux-gnu: make test-machines"),
]


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    program = tmp_path_factory.mktemp("replay") / "replay"
    subprocess.run([COMPILER, "-O1", "-o", program, Path(__file__).with_name("replay.c"), "-Wl,--no-as-needed", "-lm", "-ldl"], check=True)
    return program


def replayed(replay: Path, folder: Path, program) -> subprocess.CompletedProcess:
    objects = [folder / "code.o"]
    objects[0].write_bytes(compiled_for(TRIPLE, program.text, cpu="generic"))
    if program.tables:
        objects.append(folder / "tables.o")
        objects[1].write_bytes(compiled_for(TRIPLE, table_module(program.tables), cpu="generic"))
    write_calls(folder / "calls.bin", program.calls)
    subprocess.run([COMPILER, "-shared", "-nostdlib", "-o", folder / "code.so", *objects], check=True)
    return subprocess.run([QEMU, "-L", LIBRARIES, replay, folder / "code.so", folder / "calls.bin"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arithmetic", catalogue.ARITHMETICS)
@pytest.mark.parametrize("name", catalogue.names())
def test_every_call_leaves_the_same_bits(name, arithmetic, replay, tmp_path):
    programs, digests = recorded(name, arithmetic)
    assert digests == catalogue.published()[name][arithmetic]
    assert sum(call.name == "advance" for program in programs for call in program.calls) > 0
    for k, program in enumerate(programs):
        folder = tmp_path / str(k)
        folder.mkdir()
        there = replayed(replay, folder, program)
        assert there.returncode == 0, there.stdout + there.stderr
        assert there.stdout.startswith(f"{len(program.calls)} calls")
        assert there.stdout.endswith(" 0 different\n")


def test_a_bit_that_differs_is_seen(replay, tmp_path):
    programs, _ = recorded("metropolised", "plain")
    last = next(call for call in programs[0].calls if call.name == "advance")
    changed = next(entry for entry in reversed(last.after) if not isinstance(entry, int) and entry.dtype.kind == "f" and entry.size)
    changed.view("u8").flat[0] ^= 1
    assert replayed(replay, tmp_path, programs[0]).returncode == 1
