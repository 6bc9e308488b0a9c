"""What objects of a class are made of."""

from __future__ import annotations

import dis
import functools
import types
from typing import Any


@functools.lru_cache(maxsize=1024)
def is_open(kind: type) -> bool:
    """Whether objects of a class are their attributes and nothing else, which Python tells of a blank one."""
    own = any(vars(base).get("__slots__") for base in kind.__mro__) or any(hasattr(kind, name) for name in _AT_WORK)
    plain = all(isinstance(vars(base).get("__dict__", _DICT), types.GetSetDescriptorType) for base in kind.__mro__)  # no other under this name
    if own or not plain or not kind.__dictoffset__ or not pickles_as_usual(kind):
        return False
    try:
        _, made_from, _, items, pairs = object.__new__(kind).__reduce_ex__(4)
    except Exception:  # a class may look at its own attributes, of which a blank object has none
        return False
    return made_from == (kind,) and items is None and pairs is None


_DICT = vars(type("Plain", (), {}))["__dict__"]
_AT_WORK = ("__getnewargs__", "__getnewargs_ex__", "__del__")


def pickles_as_usual(kind: type) -> bool:
    return kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__ and kind.__getstate__ is object.__getstate__


def written(name: str, member: Any) -> bool:
    """Whether a member of a class says what its objects do: not where an attribute is kept, not what Python and dataclasses note beside it."""
    if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType | type(dis.Instruction.opcode)) or name == "_abc_impl":
        return False
    return not name.startswith("__") or (callable(member) and not name.startswith("__annotate"))
