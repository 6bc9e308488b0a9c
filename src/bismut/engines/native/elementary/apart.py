"""Code that is written once in a module and called.

A long formula that occurs many times in a step would be compiled as many times. As an internal function it is compiled once; the compiler still puts
it in place where there is a single call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from bismut.engines.native.code import Code
from bismut.engines.native.elementary.formula import Real


def apart(name: str, body: Callable[..., Sequence[Real]], results: int, *inputs: Real, keep: bool = False) -> list[Real]:
    """body(*inputs), whose `results` reals are computed by an internal function of the module, which stays one if `keep`."""
    code = inputs[0].code
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
        outputs = body(*(Real(inner, argument) for argument in function.args))
        packed = ir.Constant(function.function_type.return_type, ir.Undefined)
        for i, output in enumerate(outputs):
            packed = inner.builder.insert_value(packed, output.value, i)
        inner.builder.ret(packed)
    packed = code.builder.call(function, [a.value for a in inputs])
    return [Real(code, code.builder.extract_value(packed, i)) for i in range(results)]
