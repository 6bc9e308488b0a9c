"""How cost grows: with trajectories, steps, bodies and cores. Per-step cost should stay where it is."""

from typing import Any

from benchmarks.timing import measured


def trajectories(rounds: int, say) -> list[dict[str, Any]]:
    """10³ to 10⁶ trajectories of the Langevin pendulum, with the memory of the process."""
    rows = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        say(f"{n} trajectories")
        rows.append({"trajectories": n, **measured("bismut euler", 2, rounds, trajectories=n, seconds=3.0)})
    return rows


def steps(rounds: int, say) -> list[dict[str, Any]]:
    """More steps of 10⁴ trajectories: the memory must not grow."""
    rows = []
    for count in (100, 1_000, 10_000):
        say(f"{count} steps")
        rows.append({"steps_asked": count, **measured("bismut euler", 2, rounds, trajectories=10_000, steps=count, seconds=60.0)})
    return rows


def bodies(rounds: int, say, largest: int) -> list[dict[str, Any]]:
    """K interacting dipoles: body-steps per second, with K(K − 1)/2 pairs each."""
    rows = []
    k = 2
    while k <= largest:
        say(f"{k} bodies")
        found = measured("bismut dipoles", 2, rounds, count=k, trajectories=max(8, 2048 // k), seconds=1.0)
        rows.append({"bodies": k, **found, **({"pairs": found["speed"] * k * (k - 1) / 2} if "speed" in found else {})})
        k *= 4
    return rows


def cores(rounds: int, say) -> list[dict[str, Any]]:
    """One core and two."""
    rows = []
    for name in ("bismut euler", "bismut bodies"):
        for n in (1, 2):
            say(f"{name} on {n} cores")
            rows.append({"name": name, "cores": n, **measured(name, n, rounds, trajectories=100_000)})
    return rows
