"""Writes docs/api.md: every public name with its signature and its docstring, in the order a reader would look for them.

python docs/api.py          writes the page beside this file
python docs/api.py --print  prints it instead
"""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import bismut
from bismut.registry import OBSERVERS, PAIR_ENERGIES, PATHS, QUANTITIES, SCHEMES, SPACES, SPLITTINGS

PAGE = Path(__file__).with_suffix(".md")
SOURCE = Path(__file__).parents[1]
WIDE = 110  # characters of a signature that fit into a line

HEAD = """# API

Every public name of `bismut`, from its docstrings. This page is written by `python docs/api.py`; a test keeps it true.

```py
import bismut as bm
```

Examples and reasons are in the other pages of this folder; this one is to look things up. `Point` and `Velocity` stand for an array or a tuple
of arrays, as the space prescribes; momenta have the structure of velocities. Times, energies and lengths are in whatever units you choose.
"""

GROUPS = {
    "Spaces": (
        "Where things live. `A * B` is a product, `A ** K` a power.",
        "Euclidean Circle Torus SO2 SO3 SE2 SE3 Product Power so sl su matrix_algebra structure_constants Space Group",
    ),
    "Systems": ("What moves.", "System mechanical rigid_bodies LiePoisson in_space with_parameters State"),
    "Symmetries": ("For `System(..., symmetries={name: ...})`.", "translation translations left_rotation left_rotations right_rotation symmetry"),
    "Noise": ("What drives.", "Wiener OrnsteinUhlenbeck Jumps FractionalBrownian Recorded Path"),
    "Schemes": (
        "How it is stepped: one scalar each. All schemes, baths and comparison methods have [`start`](#class-Action), which makes start states.",
        "VariationalEuler Midpoint Verlet Discrete Action HamiltonianEuler HamiltonianMidpoint HamiltonianVerlet SphericalMidpoint "
        "DiscreteHamiltonian Reduced Claims",
    ),
    "Comparison methods": ("Not variational; named for what they are.", "EulerMaruyama ImplicitEulerMaruyama RungeKutta4"),
    "Baths": (
        "Heat: A is free motion, B a kick, O exact contact with the bath.",
        "Langevin BAOAB ABOBA OBABO GLA Metropolised WordSplitting Brownian Isobaric thermalize",
    ),
    "Runs": ("Many trajectories, or one.", "simulate trajectory average merge Result Trajectory Plan Threads Processes Dask"),
    "Observables": (
        "Functions of a state, for `observe=`; a plain function of a `State` is one, too.",
        "energy kinetic_energy potential_energy temperature momentum invariant heat work integrator_error acceptance "
        "polarisation nematic_tensor nematic_order",
    ),
    "Observers": (
        "What sees more than one state at a time, for `observe=`.",
        "time_average histogram quantiles extremes autocorrelation mean_squared_displacement section first_passage paths values Observer",
    ),
    "Findings": ("What a scheme claims, measured.", "verify verify_step advise_step Advice explain check_space symplectic_defect"),
    "Response": (
        "Numbers with errors: means to a tolerance, transport, how averages move, free energies, fits.",
        "expectation Expectation transport Transport sensitivity Sensitivity free_energy free_energy_of_work FreeEnergy "
        "fit Fit fit_averages AveragesFit",
    ),
    "Sampling": (
        "Draws from a density on spaces, groups and surfaces.",
        "sample Draws Domain Sphere Stiefel SO SU Real Positive Simplex PositiveDefinite malt kernel",
    ),
    "The variational principle": (
        "Actions of whole paths, and what follows from them.",
        "action_sum action_differential end_momenta euler_lagrange noether_momenta discrete_symplectic_form",
    ),
    "Bodies": ("Shapes of rigid bodies.", "Body body stack_bodies principal_axes points_of Placed pair_indices Box"),
    "Energies of bodies": (
        "Add up with `+`, for `rigid_bodies(potential=...)`.",
        "Potential pair_potential with_forces dipoles uniform_field soft_spheres gay_berne springs gravity harmonic_trap soft_box tail_correction "
        "sites Ewald ReactionField bonds angles dihedrals bonded_pairs",
    ),
    "Starts of matter": ("Where many points or bodies begin.", "lattice random_packing minimize Minimum read_structure Structure"),
    "Noises of bodies": ("Add up with `+`, for `rigid_bodies(noise=...)`.", "Noise translation_noise orientation_noise pair_noise"),
    "Store": ("Results on disk.", "save load"),
    "Sharing": ("Formats of other programs, see [Sharing](sharing.md), which also has `bm.units`.", "export import_state to_arviz"),
    "Views": ("Moving bodies, in a page: recorded, or running there.", "view View page Page Drawing Part Line"),
}

# Whatever is registered and not named above stands at the end of its group.
REGISTERED = {
    "Spaces": SPACES,
    "Noise": PATHS,
    "Schemes": SCHEMES,
    "Baths": SPLITTINGS,
    "Observables": QUANTITIES,
    "Observers": OBSERVERS,
    "Energies of bodies": PAIR_ENERGIES,
}

# Methods and properties that a user calls; the others serve the library itself.
MEMBERS = {
    "SO3": "from_quaternion quaternion from_rotation_vector rotation_vector from_euler_angles euler_angles",
    "SE2": "from_matrix matrix",
    "SE3": "from_matrix matrix",
    "Space": "dim origin zero move subtract random project using check check_velocity",
    "Group": "multiply inverse tau tau_inv dtau_inv Ad bracket",
    "System": "energy kinetic_energy momentum velocity momentum_map lagrangian potential noise force constraint mass freedom with_parameters",
    "Wiener": "shift increments seed_number shifted_by",
    "Path": "change check shift increments",
    "Action": "start adjoint space title",
    "Trajectory": "q p final outcome",
    "Body": "inertia principal as_given",
    "View": "save",
}


def groups() -> dict[str, tuple[str, list[str]]]:
    """Headings, with a sentence and the names below each."""
    named = {name for _, names in GROUPS.values() for name in names.split()}
    more = {group: [name for name in registry.own if name not in named] for group, registry in REGISTERED.items()}
    return {group: (words, [*names.split(), *more.get(group, [])]) for group, (words, names) in GROUPS.items()}


def page() -> str:
    """The whole page."""
    listed = [name for _, names in groups().values() for name in names]
    if sorted(listed) != sorted(bismut.__all__):
        raise SystemExit(f"docs/api.py: the groups and bismut.__all__ differ in {sorted(set(listed) ^ set(bismut.__all__)) or 'names given twice'}.")
    index = [f"- **{group}**: {', '.join(f'[`{name}`](#{_anchor(name)})' for name in names)}" for group, (_, names) in groups().items()]
    parts = [HEAD, "\n".join(index)]
    for group, (words, names) in groups().items():
        parts += [f"## {group}\n\n{words}", *(_entry(name) for name in names)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _anchor(name: str) -> str:
    """Distinct for `Body` and `body`, `SO` and `so`, which one heading would not tell apart."""
    thing = getattr(bismut, name)
    kind = "class" if inspect.isclass(thing) or (inspect.isfunction(thing) and name[0].isupper()) else "bm"
    return f"{kind}-{name}"


def _entry(name: str) -> str:
    thing = getattr(bismut, name)
    callable_ = inspect.isclass(thing) or inspect.isroutine(thing) or hasattr(thing, "__wrapped__")
    words = inspect.getdoc(thing) if callable_ else thing.description
    file = Path(inspect.getfile(inspect.unwrap(thing) if callable_ else type(thing))).relative_to(SOURCE)
    code = f"```py\n{signature(name, thing)}\n```" if callable_ else ""
    if not words:
        raise SystemExit(f"docs/api.py: {name} has no docstring.")
    head = f'<a id="{_anchor(name)}"></a>\n\n### `{name}`'
    return "\n\n".join(part for part in (head, code, prose(words), _members(name), f"[source](../{file.as_posix()})") if part)


def _members(name: str) -> str:
    """The chosen methods and properties of a class."""
    lines = []
    for member in MEMBERS.get(name, "").split():
        found = inspect.getattr_static(getattr(bismut, name), member)
        words = inspect.getdoc(found)
        if not words:
            raise SystemExit(f"docs/api.py: {name}.{member} has no docstring.")
        call = member if isinstance(found, property) else signature(member, found, bare=True)
        lines.append(f"- `.{call}`: {_escaped(' '.join(words.split()))}")
    return "Methods and properties:\n\n" + "\n".join(lines) if lines else ""


def signature(name: str, thing: Any, bare: bool = False) -> str:
    """name(a, b: int = 1) -> Type, with short names of types; `bare` leaves types and self out."""
    found = inspect.signature(thing)
    parts, starred = [], False
    for parameter in found.parameters.values():
        if bare and parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
        typed = "" if bare or parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}" if typed else f"={_default(parameter.default)}"
        parts.append(text + typed + default)
    ending = "" if bare or inspect.isclass(thing) or found.return_annotation is found.empty else f" -> {_type(found.return_annotation)}"
    line = f"{name}({', '.join(parts)}){ending}"
    return line if bare or len(line) <= WIDE else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){ending}"


def _type(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation.strip("'")
    if hasattr(annotation, "dim_str"):  # of jaxtyping
        return f'{annotation.dtype.__name__}[Array, "{annotation.dim_str}"]'
    text = annotation.__name__ if inspect.isclass(annotation) and not hasattr(annotation, "__args__") else repr(annotation)
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def _default(value: Any) -> str:
    return value.__name__ if inspect.isclass(value) or inspect.isfunction(value) else repr(value)


def prose(words: str) -> str:
    """A docstring as Markdown: paragraphs, lists of `name  what it is`, and formulas or code where lines are indented."""
    return "\n\n".join(_paragraph(part.splitlines()) for part in re.split(r"\n\s*\n", words))


def _paragraph(lines: list[str]) -> str:
    item = re.compile(r"([A-Za-z][\w, ]*?) {2,}(\S.*)")
    if all(line.startswith("    ") for line in lines):
        return "```text\n" + "\n".join(line[4:] for line in lines) + "\n```"
    if item.fullmatch(lines[0]) and all(item.fullmatch(line) or line.startswith(" ") for line in lines):
        items: list[str] = []
        for line in lines:
            if found := item.fullmatch(line):
                items.append(f"- `{found[1]}`: {_escaped(found[2])}")
            else:
                items[-1] += f" {_escaped(line.strip())}"
        return "\n".join(items)
    return _escaped("\n".join(lines))


def _escaped(text: str) -> str:
    """Letters that Markdown would read are letters; what stands in backticks is code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>|\[\]])", r"\\\1", part) for part in parts)


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), encoding="utf-8")
