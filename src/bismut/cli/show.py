"""`bismut show NAME`: what a gallery system is."""

from typing import Annotated, Any

import typer

from bismut.cli.group import command, print_json, system_names


@command("equations, parameters and symmetries of one system")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a name from `bismut list`", autocompletion=system_names)],
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False,
) -> None:
    """Physics, equations, parameters with their defaults, symmetries, scheme and step of a gallery system; the shapes that --start takes, and what
    --sweep can reach.

    \b
    bismut show heavy-top
    """
    from bismut.formatting import counted
    from bismut.gallery import entry

    described = entry(name)
    system = described.system()
    scheme = described.scheme(system)
    conserved = tuple(system.symmetries) if described.kept is None else described.kept
    if as_json:
        print_json(
            {
                "name": described.name,
                "physics": described.physics,
                "parameters": described.parameters,
                "space": str(system.space),
                "dimensions": system.space.dim,
                "channels": scheme.channels,
                "constraints": system.constraints,
                "symmetries": {one: {"words": what.description, "kept": one in conserved} for one, what in system.symmetries.items()},
                "invariants": list(system.invariants),
                "scheme": scheme.title,
                "step": described.step,
                "start": {key: [list(shape) for shape in shapes] for key, shapes in _shapes(system).items()},
                "sweep": list(system.parameters or ()),
                "facts": [fact.statement for fact in described.facts],
            }
        )
        return
    print(described.physics)
    print("\nParameters")
    wide = max(map(len, described.parameters), default=0)
    for parameter, default in described.parameters.items():
        print(f"  {parameter:{wide}} = {_written(default)}")
    print("\nSymmetries")
    for one, what in system.symmetries.items():
        print(f"  {one}: {what.description}{'' if one in conserved else ' (the noise breaks it)'}")
    if not system.symmetries:
        print("  none are named")
    if system.invariants:
        print(f"\nInvariants\n  {', '.join(system.invariants)}")
    print(
        f"\nSpace     {system.space}, {counted(system.space.dim, 'dimension')}"
        + (f", {counted(system.constraints, 'constraint')}" if system.constraints else "")
    )
    print(f"Scheme    {scheme.title}, step {described.step:g}, {counted(scheme.channels, 'Wiener process', 'Wiener processes')}")
    print(f"Start     {', '.join(f'{key} {_listed(shapes)}' for key, shapes in _shapes(system).items())}")
    if system.parameters:
        print(f"Sweep     {', '.join(system.parameters)}")
    for fact in described.facts:
        print(f"Fact      {fact.statement}")
    print(f"\nbismut run {described.name}" + (f" --set {_example(described.parameters)}" if described.parameters else ""))


def _shapes(system: Any) -> dict[str, list[tuple[int, ...]]]:
    """Shapes of the arrays that --start takes."""
    import jax

    origin, zero = (jax.eval_shape(make) for make in (system.space.origin, system.space.zero))
    moving = "momentum" if system.reduced else "velocity"
    shapes = {key: [leaf.shape for leaf in jax.tree.leaves(tree)] for key, tree in (("q", origin), (moving, zero))}
    return {key: value for key, value in shapes.items() if value}


def _listed(shapes: list[tuple[int, ...]]) -> str:
    return " and ".join(str(shape) if shape else "one number" for shape in shapes)


def _written(default) -> str:
    """A default as --set takes it."""
    if isinstance(default, tuple | list):
        return ",".join(f"{part:g}" if isinstance(part, float) else str(part) for part in default)
    return "none" if default is None else str(default)


def _example(parameters: dict) -> str:
    name, default = next(iter(parameters.items()))
    return f"{name}={_written(default)}"
