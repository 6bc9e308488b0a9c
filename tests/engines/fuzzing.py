"""Three evaluators of one program compared: XLA, the native engine and NumPy.

    line by line    every line from the same operands, special values among them: the same bits where the line is exact
    whole           the program in one piece, whole numbers only: one right answer, whatever is fused, hoisted, stored or written over

    python -m tests.engines.fuzzing 17          the program of a seed, and what differs
    python -m tests.engines.fuzzing 17 3600     seeds from 17 on for so many seconds

What may differ is said in docs/arithmetic.md: elementary functions by a few units in the last place, XLA's by more; XLA takes subnormal numbers for
zero; the sign of a zero sum.
"""

from __future__ import annotations

import sys
import time

import jax
import numpy as np

from bismut.programs.evaluation import evaluator
from tests.engines.functions import evaluate
from tests.engines.grammar import Line, Program, carry_out, write

UNITS = 8  # in the last place, for elementary functions: what NumPy and the native engine promise together, with room for SciPy
OF_XLA = 2e-8  # relative; exp2, sinh and powers are worst


class Different(AssertionError):
    """Two evaluators disagree, in words."""


def check(seed: int, tame: bool) -> int:
    """How many lines were compared; raises where two evaluators disagree."""
    program = write(seed, tame)
    title = f"seed {seed}, {'whole' if tame else 'line by line'}"
    try:
        (_check_whole if tame else _check_lines)(program, title)
    except Different:
        raise
    except Exception as problem:
        raise Different(f"{title}: {type(problem).__name__}: {problem}\n{program.text()}") from problem
    return len(program.lines)


def _check_lines(program: Program, title: str) -> None:
    env: dict = dict(program.inputs)
    count = len(next(iter(env.values())))
    for line in program.lines:
        one = evaluator(_function([line], [name for name in line.uses if name in env], program.constants, chained=False))
        rows = [one(*(env[name][k] for name in line.uses if name in env)) for k in range(count)]
        env[line.value.name] = np.stack([np.asarray(row[0]) for row in rows])
    function = _function(program.lines, list(env), program.constants, chained=False)
    arrays = list(env.values())
    _compare(program, title, env, _native(function, arrays, program, title), jax.jit(jax.vmap(function))(*arrays))


def _check_whole(program: Program, title: str) -> None:
    function, arrays = _function(program.lines, list(program.inputs), program.constants, chained=True), list(program.inputs.values())
    each = evaluator(function)
    rows = [each(*row) for row in zip(*arrays, strict=True)]
    env = program.inputs | {line.value.name: np.stack([np.asarray(row[k]) for row in rows]) for k, line in enumerate(program.lines)}
    _compare(program, title, env, _native(function, arrays, program, title), jax.jit(jax.vmap(function))(*arrays), signed=False)


def _function(lines: list[Line], names: list[str], constants: dict, chained: bool):
    """The lines as a function of the names. Constants are arguments of an inner call, so that operations on them are part of the program."""

    @jax.jit
    def inner(given, constants):
        env = constants | dict(zip(names, given, strict=True))
        found = []
        for line in lines:
            found.append(carry_out(line.text, env))
            if chained:
                env[line.value.name] = found[-1]
        return found

    return lambda *given: inner(given, constants)


def _native(function, arrays: list, program: Program, title: str) -> list:
    try:
        return evaluate(function, *arrays)
    except AssertionError as refusal:
        raise Different(f"{title}: the native engine does not take\n{program.text()}\n{refusal}") from None


def _compare(program: Program, title: str, env: dict, native: list, xla: list, signed: bool = True) -> None:
    for line, by_native, by_xla in zip(program.lines, native, xla, strict=True):
        expected = env[line.value.name]
        blurred = any(_subnormal(env[name]) for name in line.uses if name in env) or _subnormal(expected)
        for who, found in (("native", np.asarray(by_native)), ("XLA", np.asarray(by_xla))):
            if who == "XLA" and (blurred or not line.by_xla):
                continue
            wrong = _wrong(line, found, expected, who, signed and line.signed)
            if wrong is not None:
                raise Different(_report(program, title, line, env, wrong, who, found))


def _subnormal(x: np.ndarray) -> bool:
    return x.dtype.kind == "f" and bool(((x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny)).any())


def _not_numbers(x: np.ndarray) -> np.ndarray:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def _wrong(line: Line, found: np.ndarray, expected: np.ndarray, who: str, signed: bool) -> tuple | None:
    """The first place at which they differ."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return ()
    same = (found == expected) | (_not_numbers(found) & _not_numbers(expected))
    if expected.dtype.kind == "f":
        if signed:
            same &= (found != 0) | (expected != 0) | (np.signbit(found) == np.signbit(expected))
        if not line.exact:
            with np.errstate(all="ignore"):
                allowed = UNITS * np.spacing(np.abs(expected)) if who == "native" else OF_XLA * np.abs(expected) + np.finfo(expected.dtype).tiny
                allowed = np.maximum(allowed, 4e-6 * np.abs(expected)) if who == "XLA" and expected.dtype == np.float32 else allowed
                same |= np.abs(found - expected) <= allowed
    return None if same.all() else tuple(int(k) for k in np.argwhere(~same)[0])


def _report(program: Program, title: str, line: Line, env: dict, where: tuple, who: str, found: np.ndarray) -> str:
    expected = env[line.value.name]
    row = where[0] if where else 0
    lines = [line] if "line by line" in title else program.slice(line)
    used = sorted({name for one in lines for name in one.uses if name in env and (len(lines) == 1 or name in program.inputs)})
    given = [f"# {name} = {env[name][row].tolist()}  {env[name].dtype}" for name in used]
    shown = lambda x: f"{x.dtype}{list(x.shape)} {x[row].tolist()}"
    return "\n".join(
        [f"{title}: {who} differs from NumPy at {where}", *given, program.text(lines), f"NumPy {shown(expected)}", f"{who} {shown(found)}"]
    )


def main(seed: int, seconds: float = 0.0) -> int:
    """Seeds one after the other; how many disagreed."""
    begin, failed, compared = time.monotonic(), 0, 0
    while True:
        for tame in (False, True):
            try:
                compared += check(seed, tame)
            except Different as difference:
                failed += 1
                print(f"\n{difference}", flush=True)
        seed += 1
        if time.monotonic() - begin >= seconds:
            print(f"{compared} lines agree; {failed} programs do not; the next seed is {seed}")
            return failed


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    sys.exit(min(main(int(sys.argv[1]), *map(float, sys.argv[2:])), 1))
