"""A task as WebAssembly: the same code as for the processor at hand, for a machine that every browser has.

    task  ↦  module, without imports, and a manifest: what a caller has to know of it, as plain data

Arithmetic is plain, since WebAssembly has no fused multiply-add, so the bits are those of `arithmetic="plain"` everywhere else. Parameters, seeds and
step sizes are memory: who changes them compiles nothing. The caller is a page (`views/worker.js`), which lays out memory as `engine` does: one
table of 64-bit entries per call, in the order of `loops`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from bismut.engines.engine import Refusal, Task
from bismut.engines.native.engine import Written, write
from bismut.engines.native.object_cache import machine_code
from bismut.engines.native.wasm_object import module_of
from bismut.programs import Refused

_CODE_VERSION = 1  # of how modules are made: part of the name of kept code
TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+simd128,+bulk-memory,+bulk-memory-opt,+sign-ext,+nontrapping-fptoint"  # in every browser since 2023
SECONDS = 3e-9  # an operation, roughly: 100 tops in Chromium on a core of 2.5 GHz
WIDTHS = {
    "float64": 2,
    "float32": 4,
}  # one register of 128 bits; two side by side took twice as long for a top (0.21 s against 0.09), for want of registers


# What LLVM calls for a product of 128-bit numbers: with a = a₁ 2³² + a₀ and b alike, their low words as four products of 32 bits.
_PRODUCT = """
define void @__multi3(ptr %out, i64 %a, i64 %ah, i64 %b, i64 %bh) nounwind {
  %a0 = and i64 %a, 4294967295
  %a1 = lshr i64 %a, 32
  %b0 = and i64 %b, 4294967295
  %b1 = lshr i64 %b, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %c0 = lshr i64 %p00, 32
  %m0 = add i64 %p01, %c0
  %m0low = and i64 %m0, 4294967295
  %m0high = lshr i64 %m0, 32
  %m1 = add i64 %p10, %m0low
  %m1high = lshr i64 %m1, 32
  %h0 = add i64 %p11, %m0high
  %h1 = add i64 %h0, %m1high
  %x0 = mul i64 %a, %bh
  %x1 = mul i64 %ah, %b
  %h2 = add i64 %h1, %x0
  %h3 = add i64 %h2, %x1
  %low = mul i64 %a, %b
  store i64 %low, ptr %out
  %next = getelementptr i8, ptr %out, i32 8
  store i64 %h3, ptr %next
  ret void
}
"""


class WasmProgram(NamedTuple):
    """A module and what a caller has to know of it.

    code      the bytes of the module, which exports its memory and its functions
    manifest  JSON: width, across, heap (the first free address), functions (bytes of workspace, entries of the table, lists of neighbours), and
              shapes and types of state, carry, numbers and rows; where: which leaves of a carry are its state
    """

    code: bytes
    manifest: dict[str, Any]
    operations: int


def lower_to_wasm(
    task: Task, functions: Sequence[str] = ("begin", "advance"), longest: int | None = None, dear: float | None = None, trajectories: int = 1
) -> WasmProgram | Refusal:
    """The task as a module with those functions; or why there is none, which may be what it would cost: more than `longest` characters of code, or
    than `dear` operations for a step of so many trajectories. Both are known before LLVM begins."""
    if not available():
        return Refusal(f"this LLVM ({'.'.join(map(str, llvm.llvm_version_info))}) writes no WebAssembly; install llvmlite 0.45 or newer from PyPI")
    written = write(task, WIDTHS[np.dtype(task.dtype).name], "plain", threads=False)
    if isinstance(written, Refusal):
        return written
    if any(first.shapes for first, _ in written.programs.watches):
        return Refusal("a watch of a page has no memory")
    if longest is not None and len(written.text) > longest:
        return Refusal(f"its code is {len(written.text) / 1e6:.0f} MB long before LLVM shortens it, which takes minutes, for a module of megabytes")
    # Where only near ones meet, a step looks at some sixty of each body's neighbours, and not at all pairs.
    bodies = max((facts.bodies for needs in written.needs.values() for facts in needs.lists), default=1)
    operations = written.operations * min(1.0, 60 / bodies) if written.across else written.operations
    of_all = operations * trajectories
    if dear is not None and of_all > dear:
        many = "one trajectory" if trajectories == 1 else f"{trajectories} trajectories"
        return Refusal(f"a step of {many} takes {of_all:.2g} operations, about {of_all * SECONDS:.1g} s in a browser")
    try:
        identity = f"{TRIPLE} {FEATURES} {' '.join(functions)} LLVM {llvm.llvm_version_info} {_CODE_VERSION} {sorted(written.tables)}"
        code, heap = module_of(machine_code(identity, written.text, lambda: _compile(written, functions)), functions)
    except Refused as reason:
        return Refusal(f"there is no WebAssembly for {reason}")
    return WasmProgram(code, _manifest(written, functions, heap), round(operations))


@cache
def available() -> bool:
    """Whether LLVM here writes WebAssembly."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        return llvm.Target.from_triple(TRIPLE).name == "wasm32"
    except RuntimeError:
        return False


def _compile(written: Written, functions: Sequence[str]) -> bytes:
    """An object file; unreferenced functions are left out."""
    text = re.sub(r'target (datalayout|triple) = ".*"', "", written.text)
    for name in set(written.needs) - set(functions):
        text = text.replace(f'define void @"{name}"', f'define internal void @"{name}"')
    module = llvm.parse_assembly(f'target triple = "{TRIPLE}"\n{text}\n{_PRODUCT if "i128" in text else ""}')
    if written.tables:
        module.link_in(llvm.parse_assembly("\n".join(_constant(name, values) for name, values in written.tables.items())))
    module.verify()
    target = llvm.Target.from_triple(TRIPLE).create_target_machine(features=FEATURES, opt=3)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = tuning.slp_vectorization = False  # vectors are written already
    builder = llvm.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(module, builder)
    return target.emit_object(module)


def _constant(name: str, values: np.ndarray) -> str:
    data = values.tobytes()
    return f'@"{name}" = constant [{len(data)} x i8] c"{"".join(f"{chr(92)}{byte:02x}" for byte in data)}", align 16'


def _manifest(written: Written, functions: Sequence[str], heap: int) -> dict[str, Any]:
    programs = written.programs
    needs = {name: written.needs[name] for name in functions}
    return {
        "width": written.width,
        "across": written.across,
        "heap": heap,
        "functions": {
            name: {
                "workspace": one.workspace,
                "entries": one.entries,
                "lists": [{"bodies": facts.bodies, "width": facts.width} for facts in one.lists],
            }
            for name, one in needs.items()
        },
        "state": [_leaf(aval) for aval in programs.state],
        "carry": [_leaf(aval) for aval in programs.carry],
        "numbers": [_leaf(aval) for aval in programs.numbers],
        "rows": [[_leaf(aval) for aval in look.shapes] for _, look in programs.watches],
        "where": list(programs.where),
        "real": np.dtype(programs.step.shapes[programs.where[0]].dtype).name if programs.where else "float64",
    }


def _leaf(aval: Any) -> dict[str, Any]:
    return {"shape": list(aval.shape), "dtype": np.dtype(aval.dtype).name}
