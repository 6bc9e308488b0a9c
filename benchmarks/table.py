"""The goals: ratios of two sides that took turns, and seconds to a first result."""

from dataclasses import dataclass
from typing import Any

from benchmarks import first
from benchmarks.timing import Side, measured


@dataclass(frozen=True)
class Goal:
    """What is compared, and the ratio ours/peer of speeds to reach; of an `at_most` goal, the ratio peer/ours not to exceed."""

    work: str
    ours: Side
    peers: tuple[tuple[str, Side, float], ...]
    at_most: bool = False


@dataclass(frozen=True)
class First:
    """Seconds from the start of a new process to the end of a short run."""

    work: str
    name: str
    wanted: float
    count: int = 0


def _pendulum(scheme: str, per_core: float) -> tuple[Goal, ...]:
    work, name = f"Langevin pendulum, {scheme}", f"bismut {scheme.lower()}"
    rivals = (("diffrax", Side("diffrax", 2), 20.0), ("bare scan", Side("scan", 2), 7.0))
    return Goal(f"{work}, one core", Side(name), (("C program", Side("C"), per_core),)), Goal(work, Side(name, 2), rivals)


def _dipoles(count: int) -> Goal:
    size = (("count", count), ("trajectories", max(16, 4096 // count)))
    return Goal(
        f"{count} dipoles in a bath, one core", Side("bismut dipoles", 1, size), (("LAMMPS", Side("LAMMPS dipoles", 1, (("count", count),)), 3.0),)
    )


def _box(count: int) -> tuple[tuple[str, float], ...]:
    """Long rounds: a run begins with a look at all pairs, which would be a part of short ones."""
    return ("count", count), ("trajectories", 1), ("seconds", 5.0)


def _observers(words: str, name: str) -> Goal:
    """Bare against observed: how much longer the same run takes."""
    watched = {word: (word,) for word in ("time average", "autocorrelation", "histogram")}
    watched["all three"] = tuple(watched)
    peers = tuple((word, Side(name, 2, (("observers", which),)), 2.0) for word, which in watched.items())
    return Goal(f"observers at every step, {words}", Side(name, 2), peers, at_most=True)


LARGE = (("trajectories", 100_000),)

GOALS = (
    *_pendulum("Euler", 2.2),
    *_pendulum("BAOAB", 1.8),
    Goal("heavy top by autodiff", Side("bismut top", 2), (("vmap by XLA", Side("bismut top", 2, (("mode", "xla"), ("trajectories", 2048))), 30.0),)),
    Goal("free rigid bodies, Verlet, one core", Side("bismut bodies, Verlet"), (("LAMMPS", Side("LAMMPS ellipsoids"), 2.0),)),
    Goal("free rigid bodies, BAOAB", Side("bismut bodies", 2), (("jax-md", Side("jax-md", 2), 12.0),)),
    *(_dipoles(count) for count in (8, 32, 128, 512)),
    Goal("a box of 4000 dipoles, one core", Side("bismut box", 1, _box(4000)), (("LAMMPS", Side("LAMMPS box", 1, (("count", 4000),)), 0.7),)),
    Goal("a box of 8000, for each body", Side("bismut box", 1, _box(8000)), (("a box of 500", Side("bismut box", 1, _box(500)), 1 / 1.3),)),
    Goal(
        "64 points, pair energy of one's own, one core",
        Side("bismut points", 1, (("count", 64), ("trajectories", 64))),
        (("OpenMM", Side("OpenMM", 1, (("count", 64),)), 3.0),),
    ),
    _observers("pendulum", "bismut baoab"),
    _observers("heavy top", "bismut top"),
    Goal("two cores, 10⁵ trajectories", Side("bismut euler", 2, LARGE), (("one core", Side("bismut euler", 1, LARGE), 1.85),)),
    Goal("10⁴ trajectories × 100 steps", Side("bismut euler", 2, (("steps", 100),)), (("long run", Side("bismut euler", 2), 0.5),)),
)

FIRST = (
    First("pendulum", "baoab", 4.0),
    First("heavy top", "top", 4.0),
    First("free bodies", "bodies", 6.0),
    First("eight dipoles", "dipoles", 6.0, 8),
)


def contest(goals: tuple[Goal, ...], rounds: int, say) -> list[dict[str, Any]]:
    """A row for each goal and peer."""
    rows = []
    for goal in goals:
        say(goal.work)
        ours, *others = measured((goal.ours, *(side for _, side, _ in goal.peers)), rounds)
        for (peer, _, wanted), theirs in zip(goal.peers, others, strict=True):
            row = {"work": goal.work, "peer": peer, "wanted": wanted, "at_most": goal.at_most, "ours_found": ours, "peer_found": theirs}
            row["missing"] = ours.get("missing") or theirs.get("missing")
            ratio = None if row["missing"] else ours["speed"] / theirs["speed"]
            row["ratio"], row["reached"] = ratio, ratio is not None and (ratio <= wanted if goal.at_most else ratio >= wanted)
            row["effort"] = None if row["missing"] else ours["effort"] / theirs["effort"]
            rows.append(row)
    return rows


def first_results(rounds: int, say) -> list[dict[str, Any]]:
    rows = []
    for goal in FIRST:
        say(f"first result: {goal.work}")
        took = first.seconds(goal.name, goal.count, rounds)
        rows.append({"work": goal.work, "seconds": took, "wanted": goal.wanted, "reached": took <= goal.wanted})
    return rows
