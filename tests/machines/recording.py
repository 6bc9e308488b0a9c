"""All calls of machine code in a run, recorded, to be made again on another machine.

    recorded(name, arithmetic) ↦ programs, each with its LLVM IR and its calls: what they read, and what they left

The file of calls, in whole numbers of 8 bytes: how many calls; for each its name in 16 bytes, the size of the workspace, the number of entries of its
table, and each entry: −1 and a whole number; or the size of a real (0 for other bytes), the number of bytes, these before, and these after; or −2,
the number of bytes and these before, of scratch.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import llvmlite.binding as llvm
import numpy as np

from bismut.compile_cache import LRUCache
from bismut.engines.native import engine
from bismut.ensembles import task
from tests.machines import catalogue

NARROW = {"float64": 2, "float32": 4}  # lanes: registers of 128 bits, which every machine has


class Call(NamedTuple):
    name: str
    size: int
    before: list[Any]
    after: list[Any]


class Recorded(NamedTuple):
    text: str
    tables: dict[str, np.ndarray]
    calls: list[Call]


def recorded(name: str, arithmetic: str) -> tuple[list[Recorded], dict[str, Any]]:
    """The programs of a case, and the hashes of the run that was recorded."""
    programs: dict[engine.NativeProgram, Recorded] = {}
    make, call = engine.NativeProgram.__init__, engine.NativeProgram._run

    def making(self, work, written):
        programs[self] = Recorded(written.text, written.tables, [])
        make(self, work, written)

    def calling(self, name, sizes, shared, own, threads=1):
        needs = self._functions[name][1]
        entries = [*([] if needs.scratch is None else [0]), *sizes, *shared.arrays, *own]  # 0: no thread helps
        before = list(map(_copied, entries))
        call(self, name, sizes, shared, own)
        programs[self].calls.append(Call(name, needs.workspace, before, list(map(_copied, entries))))

    with (
        patch.object(engine.NativeProgram, "__init__", making),
        patch.object(engine.NativeProgram, "_run", calling),
        made_for(NARROW),
    ):
        result = catalogue.run(name, arithmetic)
    return [program for program in programs.values() if program.calls], catalogue.digests(result)


@contextmanager
def made_for(widths: dict[str, int] | None = None, processor: str = "") -> Iterator[None]:
    """Within, programs are made anew, of these widths and for a level of x86-64."""
    with (
        patch.object(engine, "WIDTHS", widths or engine.WIDTHS),
        patch.object(task, "_PLANS", LRUCache(64)),
        patch.object(task, "_PROGRAMS", LRUCache(96)),
        patch.dict(os.environ, BISMUT_PROCESSOR=processor),
    ):
        yield


def _copied(entry: Any) -> Any:
    return entry.copy() if isinstance(entry, np.ndarray) else int(entry)


def write_calls(file: Path, calls: list[Call]) -> None:
    with file.open("wb") as out:
        out.write(struct.pack("<q", len(calls)))
        for call in calls:
            out.write(struct.pack("<16sqq", call.name.encode(), call.size, len(call.before)))
            for k, (before, after) in enumerate(zip(call.before, call.after, strict=True)):
                if isinstance(before, int):
                    out.write(struct.pack("<qq", -1, before))
                    continue
                if _scratch(call.before, k):
                    out.write(struct.pack("<qq", -2, before.nbytes) + before.tobytes())
                    continue
                kind = before.itemsize if before.dtype.kind == "f" else 0
                out.write(struct.pack("<qq", kind, before.nbytes) + np.ascontiguousarray(before).tobytes() + np.ascontiguousarray(after).tobytes())


def _scratch(entries: list[Any], k: int) -> bool:
    """Whether it is the first of the two lists of `ListMemory.shelf`: whole vectors are written there, whose lanes past an end nobody reads, and LLVM
    may leave in them what it likes. The second list, the rows themselves, is compared."""
    shelf = entries[k : k + 3]
    if len(shelf) < 3 or not isinstance(shelf[2], int):
        return False
    return all(isinstance(x, np.ndarray) and x.dtype == np.int32 and x.shape == (shelf[2],) for x in shelf[:2])


def compiled_for(triple: str, text: str, level: int = 2, **options: Any) -> bytes:
    """An object file of the same IR for another machine, optimised as the engine does."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=3, reloc="pic", **options)
    module = llvm.parse_assembly(re.sub(r"(?m)^target (triple|datalayout) = .*$", "", text))
    module.triple, module.data_layout = triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def table_module(tables: dict[str, np.ndarray]) -> str:
    """Large constants, which the engine has outside of the module, as a module of their own."""
    data = lambda values: "".join(f"\\{byte:02x}" for byte in np.ascontiguousarray(values).tobytes())
    return "\n".join(f'@"{name}" = constant [{values.nbytes} x i8] c"{data(values)}", align 64' for name, values in tables.items())
