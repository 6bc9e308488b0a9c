"""The processor at hand, and machine code for it, in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np


def _processor() -> llvm.TargetMachine:
    """A description of the processor; an engine owns the one it is made with and frees it, so each needs its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)


@cache
def features() -> dict[str, bool]:
    """What this processor can do, of what matters for the numbers or the width."""
    known = llvm.get_host_cpu_features()
    return {name: bool(known.get(name, False)) for name in ("fma", "avx2", "avx512f", "neon")}


@cache
def processor() -> str:
    """What machine code is made for: part of where a run's numbers come from."""
    has = [name for name, there in features().items() if there]
    return f"{llvm.get_host_cpu_name()} ({', '.join(has)}), LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


def fuses() -> bool:
    """Whether a multiplication and an addition are one instruction, rounded once. Every 64-bit ARM does."""
    return features()["fma"] or features()["neon"]


def check(text: str) -> None:
    """Is this a module, with types that fit? LLVM ends the process where it compiles one that is not."""
    llvm.parse_assembly(text).verify()


class Machine:
    """A module in machine code; functions live as long as this does, and so do the tables of numbers that it reads."""

    def __init__(self, text: str, level: int = 2, tables: Mapping[str, np.ndarray] | None = None):
        module = llvm.parse_assembly(text)
        module.verify()
        tuning = llvm.create_pipeline_tuning_options(speed_level=level)
        tuning.loop_vectorization = tuning.slp_vectorization = False  # vectors are written already
        processor = _processor()
        builder = llvm.create_pass_builder(processor, tuning)
        builder.getModulePassManager().run(module, builder)
        self._engine, self._tables = llvm.create_mcjit_compiler(module, processor), tables or {}
        for variable in module.global_variables:
            if variable.name in self._tables:
                self._engine.add_global_mapping(variable, self._tables[variable.name].ctypes.data)
        self._engine.finalize_object()

    def function(self, name: str, *kinds: Any) -> Any:
        """A function by its name, callable from Python; it holds no interpreter lock while it runs."""
        found = ctypes.CFUNCTYPE(None, *kinds)(self._engine.get_function_address(name))
        found.machine = self  # type: ignore[attr-defined]
        return found
