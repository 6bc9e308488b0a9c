"""Code that is written once in a module and called.

A long formula that occurs many times in a step would be compiled as many times. As an internal function it is compiled once; the compiler still puts
it in place where there is a single call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from bismut.programs.codegen.code import Code
from bismut.programs.codegen.elementary.formula import RealVector


def outlined(name: str, body: Callable[..., Sequence[RealVector]], results: int, *inputs: RealVector, keep: bool = False) -> list[RealVector]:
    """body(*inputs), whose `results` reals are computed by an internal function of the module, which stays one if `keep`."""
    code = inputs[0].code
    if not isinstance(code, Code):  # numbers, and no code
        return list(body(*inputs))
    kind = inputs[0].value.type
    full = f"elementary.{name}.v{code.width}" + ("" if code.fused else ".unfused")
    module = code.builder.module
    function = module.globals.get(full)
    if function is None:
        function = ir.Function(module, ir.FunctionType(ir.LiteralStructType([kind] * results), [kind] * len(inputs)), full)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        if keep:
            function.attributes.add("noinline")
        inner = Code(ir.IRBuilder(function.append_basic_block("start")), code.width, code.fused)
        outputs = body(*(RealVector(inner, argument) for argument in function.args))
        packed = ir.Constant(function.function_type.return_type, ir.Undefined)
        for i, output in enumerate(outputs):
            packed = inner.builder.insert_value(packed, output.value, i)
        inner.builder.ret(packed)
    packed = code.builder.call(function, [a.value for a in inputs])
    return [RealVector(code, code.builder.extract_value(packed, i)) for i in range(results)]
