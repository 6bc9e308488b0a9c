"""`bismut new my_model.py`: a model to begin with, which runs as it is."""

from pathlib import Path
from typing import Annotated

import typer

from bismut.cli.group import command

TEMPLATE = '''"""A pendulum that random gusts push about. Change it into your own.

    L = ½ m l² v² + m g l cos q,      γ = s sin q

Run it:     bismut run {file}:system
Change it:  bismut run {file}:system --set length=2 --trajectories 1000
Sweep it:   bismut run {file}:system --sweep length=1,2,3
Draw it:    bismut plot output/{stem}
"""

import jax.numpy as jnp

import bismut as bm


def lagrangian(q, v, parameters):
    mass, length, gravity = (parameters[name] for name in ("mass", "length", "gravity"))
    return 0.5 * mass * length**2 * v**2 + mass * gravity * length * jnp.cos(q)


def noise(q, parameters):
    return jnp.array([parameters["gusts"] * jnp.sin(q)])  # γ_i(q): one value per Wiener process


def system(mass=1.0, length=1.0, gravity=1.0, gusts=0.3):
    """What nature does. Arguments are parameters: --set length=2; given on as `parameters` they can be swept, too: --sweep length=1,2,3."""
    parameters = {{"mass": mass, "length": length, "gravity": gravity, "gusts": gusts}}
    return bm.System(bm.Circle(), lagrangian, noise, parameters=parameters)


def scheme(system):
    """How it is stepped. `bm.explain(scheme)` says what follows from it; --scheme chooses another."""
    return bm.Midpoint(system)


def start(scheme):
    """Where it begins: a point and a velocity=, a momentum=, or a temperature= for random momenta."""
    return scheme.start(jnp.asarray(1.0), velocity=jnp.asarray(0.0))


step = 0.05
observables = {{"height": lambda state: -jnp.cos(state.q)}}  # functions of a state: --observe energy,height
'''


@command("start a model of your own")
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="the Python file to write")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an existing file")] = False,
) -> None:
    """Write a model to start from; it runs as it is.

    \b
    bismut new my_model.py
    bismut run my_model.py:system
    """
    from bismut.errors import BismutError

    if file.suffix != ".py":
        raise BismutError(f"A model is a Python file such as my_model.py, got {file}.")
    if file.exists() and not overwrite:
        raise BismutError(f"{file} exists already. Choose another name, or replace it with --overwrite.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(TEMPLATE.format(file=file, stem=file.stem), encoding="utf-8")
    print(f"{file} is written. Run it:\n\n    bismut run {file}:system\n")
