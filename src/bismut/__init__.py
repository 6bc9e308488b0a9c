"""bismut: a stochastic action in, a structure-preserving simulation out.

The public names are those of `bismut.public`. They are fetched when the first of them is asked for, because reading JAX takes more than a second and
`bismut --help` or a completed word in a shell should not wait for it.
"""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bismut import units as units
    from bismut.public import *  # noqa: F403

logging.getLogger(__name__).addHandler(logging.NullHandler())  # quiet unless somebody listens: logging.getLogger("bismut").setLevel("DEBUG")


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'bismut' has no attribute {name!r}")
    from importlib import import_module

    from bismut.process import check_room

    check_room()
    import_module("bismut.requirements").check_jax()  # first, so that it tells of the user's line
    public = import_module("bismut.public")  # which also makes the rooms attributes of this module
    globals().update({known: getattr(public, known) for known in public.__all__}, __all__=public.__all__)
    if name not in globals():
        from bismut.errors import nearest

        raise AttributeError(f"bismut has no {name!r}. {nearest(name, public.__all__)} dir(bismut) lists them.")
    return globals()[name]


def __dir__() -> list[str]:
    from bismut.public import __all__ as names

    return sorted({*globals(), *names})
