"""`bismut doctor`: is everything here that computes, and does it compute rightly?"""

import sys
import time
from typing import Annotated, Any

import typer

from bismut.cli.group import FAILED, command, print_json

LIMIT = 1e-12  # for a symplectic defect of one step with numbers of order one


@command("versions, devices, and a self-test")
def doctor(as_json: Annotated[bool, typer.Option("--json", help="as JSON, for programs")] = False) -> None:
    """Versions, devices, precision, and self-tests: the compiler must agree with NumPy, one noisy step must be symplectic to round-off, noise
    must have the law of a Wiener process, and the native engine must take the common kinds of systems.

    \b
    bismut doctor
    """
    import platform

    import jax

    from bismut.engines.native.target import processor
    from bismut.engines.native.wasm import available
    from bismut.engines.xla_selfcheck import ROWS, wrong_rows
    from bismut.operating_system import available_memory, cores
    from bismut.store import versions

    memory = available_memory()
    report: dict[str, Any] = {
        "python": f"{platform.python_version()} at {sys.executable}",
        "system": platform.platform(),
        "versions": versions() | {"matplotlib": _matplotlib()},
        "devices": [str(device) for device in jax.devices()],
        "cores": cores(),
        "memory": None if memory is None else f"{memory / 1e9:.1f} GB free",
        "float64": bool(jax.config.read("jax_enable_x64")),
        "processor": processor(),
        "pages": "run as WebAssembly, written here without a linker" if available() else "do not run: this llvmlite writes no WebAssembly",
    }
    wrong = wrong_rows()
    report["compiler"] = {"wrong_rows": wrong, "rows": ROWS, "held": wrong == 0}
    clock = time.perf_counter()
    defect = _self_test()
    report["self_test"] = {"symplectic_defect": defect, "limit": LIMIT, "held": defect < LIMIT, "seconds": round(time.perf_counter() - clock, 2)}
    report["noise"] = _noise()
    report["engines"] = _engines()
    # Only processors have a native engine.
    native = jax.default_backend() != "cpu" or all(one["engine"] == "native" for one in report["engines"].values())
    fine = report["float64"] and report["compiler"]["held"] and report["self_test"]["held"] and report["noise"]["held"] and native
    if as_json:
        print_json(report | {"ok": fine})
    else:
        _print_report(report)
    if not fine:
        raise typer.Exit(FAILED)


def _self_test() -> float:
    """The symplectic defect of one variational step with strong noise; NaN if the step fails."""
    import jax
    import jax.numpy as jnp

    from bismut.actions import Midpoint
    from bismut.findings import symplectic_defect
    from bismut.mechanics import State, System
    from bismut.spaces import Euclidean

    # Not separable and implicit, so that the solver is tried too; small, so that it compiles in a second.
    system = System(Euclidean(1), lambda q, v: 0.5 * (1 + 0.3 * jnp.sum(q**2)) * jnp.sum(v**2) - jnp.sum(q**4), jnp.sin)
    start = State(jnp.array([0.4]), jnp.array([-0.7]))
    return float(jax.jit(lambda state: symplectic_defect(Midpoint(system), state, 0.1, jnp.array([0.9])))(start))


def _noise() -> dict[str, Any]:
    """Whether what the engine draws has the law of a Wiener process, and Maxwell starts their temperature; the seed is fixed."""
    import jax.numpy as jnp

    from bismut.findings.noise_law import noise_law
    from bismut.findings.statistics import ALARM
    from bismut.gallery import entries
    from bismut.noise import Wiener

    entry = entries()["double-well"]
    scheme = entry.scheme(entry.build())
    (finding,) = noise_law(scheme, jnp.zeros(scheme.system.space.dim), Wiener(0), entry.step, 0.0)
    assert finding.alarm is not None
    return {"variance": finding.measured, "how": finding.how, "held": finding.alarm > ALARM}


def _engines() -> dict[str, dict[str, str]]:
    """Which engine computes one system of each common kind, and why, if it is not the native one."""
    import jax.numpy as jnp
    import numpy as np

    from bismut.actions import Midpoint, VariationalEuler
    from bismut.ensembles import simulate
    from bismut.gallery import entries
    from bismut.mechanics import System
    from bismut.mechanics.bodies import dipoles, rigid_bodies
    from bismut.spaces import Euclidean

    bodies = VariationalEuler(rigid_bodies(mass=np.ones(3), inertia=np.ones((3, 3)), potential=dipoles((0.0, 0.0, 1.0))))
    points = 2.0 * np.eye(3), np.tile(np.eye(3), (3, 1, 1))
    implicit = Midpoint(System(Euclidean(1), lambda q, v: 0.5 * (1 + jnp.sum(q**2)) * jnp.sum(v**2), jnp.sin))
    cases = {
        "bodies with pair energies": (bodies, bodies.start(points, temperature=1.0)),
        "implicit solve": (implicit, implicit.start([0.4], momentum=[0.7])),
    }
    for kind, name in (("pendulum", "pendulum"), ("constraint", "spherical-pendulum")):
        scheme = entries()[name].scheme(entries()[name].build())
        cases[kind] = scheme, entries()[name].start(scheme)
    plans = {kind: simulate(scheme, start, step=0.01, steps=1, trajectories=1, dry_run=True) for kind, (scheme, start) in cases.items()}
    return {kind: {"engine": plan.engine, "why": plan.why} for kind, plan in plans.items()}


def _matplotlib() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("matplotlib")
    except PackageNotFoundError:
        return "missing (pictures need it: pip install 'bismut[figures]')"


def _print_report(report: dict[str, Any]) -> None:
    from bismut.requirements import doubt_about_jax, jax_requirement

    for name, value in report.items():
        if name == "versions":
            for package, number in value.items():
                print(f"{package:12} {number}")
        elif name == "compiler":
            mark, remedy = ("✓", "") if value["held"] else ("✗", f"; install another jax: pip install '{jax_requirement()}'")
            print(f"{mark} compiled sums agree with NumPy: {value['wrong_rows']} of {value['rows']} rows are wrong{remedy}")
        elif name == "self_test":
            mark = "✓" if value["held"] else "✗"
            print(f"{mark} one noisy step is symplectic: defect {value['symplectic_defect']:.2g}, limit {LIMIT:g}, {value['seconds']} s")
        elif name == "noise":
            print(f"{'✓' if value['held'] else '✗'} noise is that of a Wiener process: variance {value['variance']:.4f}; {value['how']}")
        elif name == "engines":
            for kind, chosen in value.items():
                mark = "✓" if chosen["engine"] == "native" else "✗"
                print(f"{mark} {kind}: the {chosen['engine']} engine computes" + (f", because {chosen['why']}" if mark == "✗" else ""))
        else:
            print(f"{name:12} {', '.join(value) if isinstance(value, list) else value}")
    doubt = doubt_about_jax(report["versions"]["jax"], jax_requirement())
    if doubt is not None:
        print(f"✗ {doubt}")
    if not report["float64"]:
        print('✗ JAX computes in float32: set JAX_ENABLE_X64=1, or jax.config.update("jax_enable_x64", True).')
