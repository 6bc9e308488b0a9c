"""The processor at hand, and machine code for it, in memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from bismut.engines.native.object_cache import machine_code
from bismut.errors import DomainError

_CODE_VERSION = 1  # of how modules are optimised: part of the name of kept code


# Levels of x86-64, for which tests have code made on a processor that can do more: BISMUT_PROCESSOR=x86-64-v3. Not for users: bits are the same.
_LEVELS: dict[str, tuple[str, ...]] = {"x86-64": (), "x86-64-v2": (), "x86-64-v3": ("fma", "avx2"), "x86-64-v4": ("fma", "avx2", "avx512f")}


@cache
def _host(asked: str | None) -> tuple[str, str, dict[str, bool]]:
    """Name, features for LLVM, and what the processor can do, of what matters for the numbers or the width; of the one `asked` for, if any."""
    known = llvm.get_host_cpu_features()
    there = {name: bool(known.get(name, False)) for name in ("fma", "avx2", "avx512f", "neon")}
    # Every 64-bit ARM has it, whether LLVM finds features, as it may not on macOS, or not. On 32 bits it does not say that products are fused.
    there["neon"] = llvm.get_default_triple().split("-")[0] in ("aarch64", "aarch64_be", "arm64", "arm64e")
    if not asked:
        return llvm.get_host_cpu_name(), known.flatten(), there
    if asked not in _LEVELS or not all(there[name] for name in _LEVELS[asked]):
        able = [level for level, wanted in _LEVELS.items() if all(there[name] for name in wanted)]
        raise DomainError(f"BISMUT_PROCESSOR must be one of {', '.join(able)} on this processor, got {asked!r}. Leave it unset.")
    return asked, "-prefer-256-bit", {name: name in _LEVELS[asked] for name in there}


def host() -> tuple[str, str, dict[str, bool]]:
    return _host(os.environ.get("BISMUT_PROCESSOR"))


def _processor() -> llvm.TargetMachine:
    """A description of the processor; an engine owns the one it is made with and frees it, so each needs its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, flags, _ = host()
    return llvm.Target.from_default_triple().create_target_machine(cpu=name, features=flags, opt=3, jit=True)


def features() -> dict[str, bool]:
    """What this processor can do, of what matters for the numbers or the width."""
    return host()[2]


def processor() -> str:
    """What machine code is made for: part of where a run's numbers come from."""
    has = [name for name, there in features().items() if there]
    return f"{host()[0]} ({', '.join(has)}), LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


def fuses() -> bool:
    """Whether a multiplication and an addition are one instruction, rounded once. Every 64-bit ARM does."""
    return features()["fma"] or features()["neon"]


def chosen_arithmetic(asked: str | None) -> str:
    """The arithmetic that was asked for, or the one that is fast here."""
    if asked == "fused" and not fuses():
        raise DomainError(
            f'arithmetic="fused" needs a fused multiply-add, which this processor, {processor()}, does not have. '
            'arithmetic="plain" runs on every machine, to the same bits.'
        )
    return asked or ("fused" if fuses() else "plain")


def check(text: str) -> None:
    """Is this a module, with types that fit? LLVM ends the process where it compiles one that is not."""
    llvm.parse_assembly(text).verify()


def _compile(text: str, level: int) -> bytes:
    """A module as an object file."""
    module = llvm.parse_assembly(text)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.slp_vectorization = False  # vectors are written already
    target = _processor()
    builder = llvm.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(module, builder)
    return target.emit_object(module)


class Machine:
    """A module in machine code; functions live as long as this does, and so do the tables of numbers that it reads."""

    def __init__(self, text: str, level: int = 2, tables: Mapping[str, np.ndarray] | None = None):
        self._tables = tables or {}
        target = _processor()
        identity = f"{processor()} {target.triple} {host()[1]} {level} {_CODE_VERSION}"
        code = machine_code(identity, text, lambda: _compile(text, level))
        names = llvm.parse_assembly("\n".join(f'@"{name}" = external global i8' for name in self._tables))
        self._engine = llvm.create_mcjit_compiler(names, target)
        for variable in names.global_variables:
            self._engine.add_global_mapping(variable, self._tables[variable.name].ctypes.data)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def function(self, name: str, *kinds: Any) -> Any:
        """A function by its name, callable from Python; it holds no interpreter lock while it runs."""
        function = ctypes.CFUNCTYPE(None, *kinds)(self._engine.get_function_address(name))
        function.machine = self  # type: ignore[attr-defined]
        return function
