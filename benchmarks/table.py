"""The goals, each a ratio of two contestants measured in the same run."""

from dataclasses import dataclass
from typing import Any

from benchmarks.timing import measured


@dataclass(frozen=True)
class Goal:
    """What is compared: `ours` against `peer`, both on so many cores, and the ratio to reach."""

    work: str
    ours: str
    peer: str
    cores: int
    wanted: float
    ours_settings: tuple = ()
    peer_settings: tuple = ()


MANY = (("trajectories", 100_000),)

GOALS = (
    Goal("Langevin pendulum, Euler", "bismut euler", "diffrax", 2, 12.0),
    Goal("Langevin pendulum, Euler", "bismut euler", "scan", 2, 3.5),
    Goal("Langevin pendulum, Euler, one core", "bismut euler", "C", 1, 1.2),
    Goal("Langevin pendulum, BAOAB", "bismut baoab", "diffrax", 2, 12.0),
    Goal("Langevin pendulum, BAOAB", "bismut baoab", "scan", 2, 3.5),
    Goal("Langevin pendulum, BAOAB, one core", "bismut baoab", "C", 1, 1.2),
    Goal("Langevin rigid bodies, BAOAB", "bismut bodies", "jax-md", 2, 5.0),
    Goal("Langevin rigid bodies, Verlet, one core", "bismut bodies, Verlet", "lammps", 1, 1.5),
    Goal("heavy top by autodiff, against vmap", "bismut top", "bismut top", 2, 8.0, (), (("mode", "xla"), ("trajectories", 2048))),
    Goal(
        "two cores against one, 10⁵ trajectories", "bismut euler", "bismut euler", 0, 1.7, (("trajectories", 100_000),), (("trajectories", 100_000),)
    ),
)


def contest(goals: tuple[Goal, ...], rounds: int, say) -> list[dict[str, Any]]:
    """Every goal with both speeds and their ratio. A contestant is measured once for each number of cores."""
    known: dict[tuple, dict] = {}

    def speed(name: str, cores: int, settings: tuple) -> dict:
        key = (name, cores, settings)
        if key not in known:
            found = known[key] = measured(name, cores, rounds, **dict(settings))
            what = f"{found['speed'] / 1e6:.2f} M/s" if "speed" in found else f"missing: {found['missing']}"
            say(f"{name} on {cores} core{'s' if cores > 1 else ''} {dict(settings) or ''}: {what}")
        return known[key]

    rows = []
    for goal in goals:
        ours = speed(goal.ours, goal.cores or 2, goal.ours_settings)
        peer = speed(goal.peer, goal.cores or 1, goal.peer_settings)
        row: dict[str, Any] = {"work": goal.work, "ours": goal.ours, "peer": goal.peer, "cores": goal.cores, "wanted": goal.wanted}
        row |= {"ours_found": ours, "peer_found": peer}
        missing = ours.get("missing") or peer.get("missing")
        row["ratio"] = None if missing else ours["speed"] / peer["speed"]
        row["missing"] = missing
        rows.append(row)
    return rows


def first_results(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Seconds to the first result, compiling included, of everything of ours that was measured."""
    found = {}
    for row in rows:
        peer = f"{row['peer']} by vmap" if "vmap" in row["work"] else row["peer"]
        for name, result in ((row["ours"], row["ours_found"]), (peer, row["peer_found"])):
            if "first" in result:
                found.setdefault(name, result["first"])
    return sorted(found.items())
