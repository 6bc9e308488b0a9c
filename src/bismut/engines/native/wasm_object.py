"""A WebAssembly module from the one object file that LLVM writes for it.

    object   imports a memory and a stack pointer, and says in its section "linking" which function has which name
    module   has both of its own, and exports the functions that are asked for

A linker moves many objects to places of their own. Here is one, with no calls outside: addresses and numbers of functions that LLVM wrote into it
are final where its data begin at address 0. So nothing is moved, and the smallest package with a linker (ziglang, 411 MB) is not needed.

    0 ... data      constants        data ... heap    the stack, which grows down        heap ...    the caller's
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bismut.programs import Refused

PAGE = 65536
_SPARE = 65536  # bytes of the stack beside those that functions say they take
_HEADER = b"\0asm\1\0\0\0"
_CUSTOM, _TYPES, _IMPORTS, _FUNCTIONS, _MEMORY, _GLOBALS, _EXPORTS, _CODE, _DATA, _DATA_COUNT = 0, 1, 2, 3, 5, 6, 7, 10, 11, 12
_FRAME = re.compile(rb"\x23\x80\x80\x80\x80\x00\x41([\x80-\xff]*[\x00-\x7f])\x6b")  # stack pointer − so many bytes, where a function begins


class WasmModule(NamedTuple):
    """A module as bytes, and the first address that is the caller's."""

    code: bytes
    heap: int


def module_of(code: bytes, exported: Sequence[str]) -> WasmModule:
    """The module of an object file."""
    sections = list(_sections(code))
    imports = list(_imports(b"".join(body for kind, body in sections if kind == _IMPORTS)))
    missing = [name for kind, name in imports if kind == 0]
    if missing:
        raise Refused(f"{', '.join(missing)}, which WebAssembly does not bring along")
    names = _function_names(next(body for kind, body in sections if kind == _CUSTOM and _text(body, 0)[0] == "linking"))
    data = max((at + size for at, size in _segments(b"".join(body for kind, body in sections if kind == _DATA))), default=0)
    stack = _SPARE + sum(_signed(one[1]) for one in _FRAME.finditer(code))
    heap = -(-(data + stack) // 1024) * 1024
    exports = [_string("memory") + b"\2\0", *(_string(name) + b"\0" + _leb(names[name]) for name in exported)]
    own = {
        _MEMORY: _leb(1) + b"\0" + _leb(-(-heap // PAGE)),
        _EXPORTS: _leb(len(exports)) + b"".join(exports),
    }
    if any(kind == 3 for kind, _ in imports):
        own[_GLOBALS] = _leb(1) + b"\x7f\1\x41" + _sleb(heap) + b"\x0b"  # a 32-bit number that changes: the stack pointer
    module_sections = {kind: body for kind, body in sections if kind in (_TYPES, _FUNCTIONS, _CODE, _DATA, _DATA_COUNT)} | own
    order = (_TYPES, _FUNCTIONS, _MEMORY, _GLOBALS, _EXPORTS, _DATA_COUNT, _CODE, _DATA)
    return WasmModule(
        _HEADER + b"".join(bytes([kind]) + _leb(len(module_sections[kind])) + module_sections[kind] for kind in order if kind in module_sections),
        heap,
    )


def _sections(code: bytes) -> Iterator[tuple[int, bytes]]:
    if code[:8] != _HEADER:
        raise Refused("this machine: its LLVM writes no WebAssembly")
    at = 8
    while at < len(code):
        kind = code[at]
        size, at = _number(code, at + 1)
        yield kind, code[at : at + size]
        at += size


def _imports(body: bytes) -> Iterator[tuple[int, str]]:
    """Kinds (0 function, 1 table, 2 memory, 3 global) and names."""
    if not body:
        return
    count, at = _number(body, 0)
    for _ in range(count):
        _, at = _text(body, at)
        name, at = _text(body, at)
        kind = body[at]
        at += 1
        if kind == 0:
            _, at = _number(body, at)
        elif kind == 3:
            at += 2
        else:
            at += kind == 1  # the type of what a table holds
            flags, at = _number(body, at)
            for _ in range(1 + (flags & 1)):
                _, at = _number(body, at)
        yield kind, name


def _function_names(body: bytes) -> dict[str, int]:
    """Numbers of functions by name, from the table of symbols."""
    _, at = _text(body, 0)
    _, at = _number(body, at)
    names = {}
    while at < len(body):
        kind, (size, at) = body[at], _number(body, at + 1)
        end = at + size
        if kind == 8:
            count, at = _number(body, at)
            for _ in range(count):
                symbol = body[at]
                flags, at = _number(body, at + 1)
                if symbol in (0, 2):  # a function, a global
                    index, at = _number(body, at)
                    name, at = _text(body, at) if not flags & 0x10 or flags & 0x40 else ("", at)
                    if symbol == 0 and name:
                        names[name] = index
                elif symbol == 1:  # data
                    _, at = _text(body, at)
                    for _ in range(0 if flags & 0x10 else 3):
                        _, at = _number(body, at)
                else:
                    raise Refused(f"a symbol of kind {symbol} in an object file")
        at = end
    return names


def _segments(body: bytes) -> Iterator[tuple[int, int]]:
    """Addresses and sizes of data."""
    if not body:
        return
    count, at = _number(body, 0)
    for _ in range(count):
        assert body[at : at + 2] == b"\0\x41", "data of an object lie in its one memory, at a fixed address"
        end = at + 2
        while body[end] & 0x80:
            end += 1
        address = _signed(body[at + 2 : end + 1])
        size, at = _number(body, end + 2)
        yield address, size
        at += size


# Whole numbers in seven bits a byte, the lowest first.


def _number(code: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = code[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if not byte & 0x80:
            return value, at


def _signed(code: bytes) -> int:
    value, _ = _number(code, 0)
    bits = 7 * len(code)
    return value - (1 << bits) if value >> (bits - 1) else value


def _leb(value: int) -> bytes:
    encoded = b""
    while value > 0x7F:
        encoded, value = encoded + bytes([value & 0x7F | 0x80]), value >> 7
    return encoded + bytes([value])


def _sleb(value: int) -> bytes:
    """Of a number ≥ 0: its last byte must not look negative."""
    encoded = _leb(value)
    return encoded[:-1] + bytes([encoded[-1] | 0x80, 0]) if encoded[-1] & 0x40 else encoded


def _text(code: bytes, at: int) -> tuple[str, int]:
    size, at = _number(code, at)
    return code[at : at + size].decode(), at + size


def _string(text: str) -> bytes:
    return _leb(len(text.encode())) + text.encode()
