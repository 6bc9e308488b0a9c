"""The goals: ratios of two sides that took turns, and seconds to a first result."""

from dataclasses import dataclass
from typing import Any

from benchmarks import first
from benchmarks.timing import Missing, Process, Side, measured
from bismut.registry import GALLERY


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
    second: float
    count: int = 0


@dataclass(frozen=True)
class Speed:
    """Millions of steps a second to reach, of one side alone."""

    work: str
    side: Side
    wanted: float


@dataclass(frozen=True)
class Memory:
    """Bytes that a process may take at most."""

    work: str
    side: Side
    wanted: float


def _pendulum(scheme: str, per_core: float) -> tuple[Goal, ...]:
    work, name = f"Langevin pendulum, {scheme}", f"bismut {scheme.lower()}"
    rivals = (("diffrax", Side("diffrax", 2), 20.0), ("bare scan", Side("scan", 2), 7.0))
    return Goal(f"{work}, one core", Side(name), (("C program", Side("C"), per_core),)), Goal(work, Side(name, 2), rivals)


def _dipoles(count: int) -> Goal:
    size = (("count", count), ("trajectories", max(16, 4096 // count)))
    wanted = 4.0 if count == 8 else 3.0
    theirs = Side("LAMMPS dipoles", 1, (("count", count),))
    return Goal(f"{count} dipoles in a bath, one core", Side("bismut dipoles", 1, size), (("LAMMPS", theirs, wanted),))


def _box(count: int) -> tuple[tuple[str, float], ...]:
    """Long rounds: a run begins with a look at all pairs, which would be a part of short ones."""
    return ("count", count), ("trajectories", 1), ("seconds", 5.0)


def _fluid(count: int) -> Goal:
    """Points of a liquid in a box: one trajectory, whose steps are M body-steps."""
    size, runs = (("count", count),), _box(count)
    peers = (("LAMMPS opt", Side("LAMMPS fluid", 1, size), 1.5), ("OpenMM", Side("OpenMM fluid", 1, size), 1.0))
    return Goal(f"Lennard-Jones liquid, {count} points, one core", Side("bismut fluid", 1, runs), peers)


def _chain(count: int) -> Goal:
    copies, size = max(16, 4096 // count), ("count", count)
    theirs = Side("OpenMM molecules", 1, (("kind", "chain"), size, ("copies", max(1, 1000 // count))))
    return Goal(f"rigid chains of {count - 1} links, one core", Side("bismut chain", 1, (size, ("trajectories", copies))), (("OpenMM", theirs, 2.0),))


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
    Goal("a box of 4000 dipoles, one core", Side("bismut box", 1, _box(4000)), (("LAMMPS", Side("LAMMPS box", 1, (("count", 4000),)), 3.0),)),
    Goal("a box of 8000, for each body", Side("bismut box", 1, _box(8000)), (("a box of 500", Side("bismut box", 1, _box(500)), 1 / 1.3),)),
    *(_fluid(count) for count in (500, 4000, 32_000, 108_000)),
    Goal(
        "Lennard-Jones liquid, 32000 points, two cores",
        Side("bismut fluid", 2, _box(32_000)),
        (
            ("one core", Side("bismut fluid", 1, _box(32_000)), 1.8),
            ("LAMMPS omp", Side("LAMMPS fluid", 2, (("count", 32_000), ("style", "lj/cut/omp"), ("threads", 2))), 1.5),
        ),
    ),
    Goal(
        "Lennard-Jones liquid of 108000, for each point",
        Side("bismut fluid", 1, _box(108_000)),
        (("4000 points", Side("bismut fluid", 1, _box(4000)), 1 / 1.25),),
    ),
    Goal("4000 Gay-Berne rods, one core", Side("bismut rods", 1, _box(4000)), (("LAMMPS", Side("LAMMPS rods", 1, (("count", 4000),)), 3.0),)),
    Goal("overdamped bodies, three frictions, one core", Side("bismut overdamped"), (("LAMMPS", Side("LAMMPS overdamped"), 3.0),)),
    Goal(
        "216 molecules of water, one core",
        Side("bismut liquid water", 1, _box(216)),
        (("LAMMPS", Side("LAMMPS water", 1, (("molecules", 216),)), 1.0), ("OpenMM", Side("OpenMM water", 1, (("molecules", 216),)), 1.0)),
    ),
    Goal(
        "rigid trimers, one core",
        Side("bismut trimer", 1, (("count", 3), ("trajectories", 4096))),
        (
            ("LAMMPS rattle", Side("LAMMPS trimers"), 2.0),
            ("OpenMM", Side("OpenMM molecules", 1, (("kind", "trimer"), ("count", 3), ("copies", 1000))), 2.0),
        ),
    ),
    *(_chain(count) for count in (11, 101)),
    Goal(
        "rigid chains of 1000 links, for each link",
        Side("bismut chain", 1, (("count", 1001), ("trajectories", 16))),
        (("10 links", Side("bismut chain", 1, (("count", 11), ("trajectories", 1024))), 0.5),),
    ),
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
    First("pendulum", "baoab", 4.0, 1.2),
    First("heavy top", "top", 4.0, 1.2),
    First("free bodies", "bodies", 6.0, 2.0),
    First("eight dipoles", "dipoles", 6.0, 1.2, 8),
    First("chain of pendulums", "pendulum-chain", 4.0, 2.0),
    First("rigid triatomic", "rigid-triatomic", 4.0, 2.0),
    First("patchy disks", "patchy-disks", 12.0, 2.0),
    First("water", "water", 12.0, 2.0),
)

SECOND = 2.0  # seconds of the second process of the same script, for any system of the gallery
IMPORT = 0.8  # seconds of a process that imports bismut
ASKED = ("heavy-top", "rigid-triatomic", "pendulum-chain", "magnetic-dipoles", "water")  # for their energy and momenta, again
ANSWER = 1.0  # milliseconds

ONE = (("trajectories", 1),)
SPEEDS = (Speed("one pendulum, Euler", Side("bismut euler", 1, ONE), 25.8), Speed("one heavy top", Side("bismut top", 1, ONE), 4.2))
MEMORY = (Memory("10⁶ points of a liquid", Side("bismut fluid", 1, (("count", 4 * 63**3), ("trajectories", 1), ("steps", 1))), 2e9),)


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
    """Of the systems with a goal of their own, cold and in a second process; of all others of the gallery, in a second process."""
    rows = []

    def add(work: str, took: float, wanted: float) -> None:
        rows.append({"work": work, "seconds": took, "wanted": wanted, "reached": took <= wanted})

    say("import")
    add("import", first.importing(rounds), IMPORT)
    for goal in FIRST:
        say(f"first result: {goal.work}")
        cold, second = first.seconds(goal.name, goal.count, rounds)
        add(f"{goal.work}, cold", cold, goal.wanted)
        add(f"{goal.work}, second", second, goal.second)
    for name in sorted({*GALLERY.names()} - {goal.name for goal in FIRST}):
        say(f"first result: {name}")
        add(f"{name}, second", first.seconds(name, 0, 1)[1], SECOND)
    return rows


def asked(say) -> list[dict[str, Any]]:
    """Milliseconds of what is asked of a state, from the second call on."""
    rows = []
    for name in ASKED:
        say(f"asked: {name}")
        for word, took in first.asked(name).items():
            rows.append({"work": f"{word} of {name}", "milliseconds": took, "missing": None, "wanted": ANSWER, "reached": took <= ANSWER})
    return rows


def speeds(rounds: int, say) -> list[dict[str, Any]]:
    """Of one trajectory: millions of steps a second."""
    rows = []
    for goal in SPEEDS:
        say(goal.work)
        (found,) = measured((goal.side,), rounds)
        speed = found.get("speed", 0.0) / 1e6
        rows.append({"work": goal.work, "speed": speed, "missing": found.get("missing"), "wanted": goal.wanted, "reached": speed >= goal.wanted})
    return rows


def memory(say) -> list[dict[str, Any]]:
    """The most memory that a process took until it had made a step."""
    rows = []
    for goal in MEMORY:
        say(goal.work)
        try:
            with Process(goal.side) as process:
                taken, missing = process.facts()["facts"]["memory"], None
        except Missing as problem:
            taken, missing = float("inf"), str(problem)
        rows.append({"work": goal.work, "bytes": taken, "missing": missing, "wanted": goal.wanted, "reached": taken <= goal.wanted})
    return rows
