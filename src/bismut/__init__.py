"""bismut: a stochastic action in, a structure-preserving simulation out.

The public names are those of `bismut._api` and of what bismut registers, `bismut.__all__`. Each is imported when it is first used, with its own
package and what that needs: importing JAX takes most of a second, for which neither `bismut --help` nor the completion of a shell should wait, and a
simulation loads neither samplers nor checks.
"""

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bismut import units as units
    from bismut._api import *  # noqa: F403

logging.getLogger(__name__).addHandler(logging.NullHandler())  # quiet unless a handler is added: logging.getLogger("bismut").setLevel("DEBUG")


@cache
def _written() -> dict[str, str]:
    """The names of `bismut._api`, with the module of each, read off the source: importing it would import everything."""
    import ast
    from pathlib import Path

    source = Path(__file__).with_name("_api.py").read_text(encoding="utf-8")
    lines = [line for line in ast.parse(source).body if isinstance(line, ast.ImportFrom)]
    return {name.asname or name.name: str(line.module) for line in lines for name in line.names if line.module != __name__}


@cache
def _registered() -> dict[str, Any]:
    """Registered names that are public, with the registry of each."""
    from bismut.registry import PUBLIC

    return {name: registry for registry in PUBLIC for name in registry.own}


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'bismut' has no attribute {name!r}")
    from importlib import import_module
    from importlib.util import find_spec

    from bismut.process import check_address_space

    if name == "__all__":
        return sorted({*_written(), *_registered()})
    check_address_space()
    import_module("bismut.requirements").check_jax()  # first, so that it warns about the user's line
    if name in _written():
        value = getattr(import_module(_written()[name]), name)
    elif find_spec(f"bismut.{name}") is not None:
        return import_module(f"bismut.{name}")
    elif name in _registered():
        value = _registered()[name][name]
    else:
        from bismut.errors import nearest

        raise AttributeError(f"bismut has no {name!r}. {nearest(name, __getattr__('__all__'))} dir(bismut) lists them.")
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
