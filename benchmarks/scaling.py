"""How cost grows: with trajectories, steps and bodies. Per-step cost should stay where it is."""

from typing import Any

from benchmarks.timing import Side, measured


def trajectories(rounds: int, say) -> list[dict[str, Any]]:
    """10³ to 10⁶ trajectories of the Langevin pendulum, with the memory of the process."""
    rows = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        say(f"{n} trajectories")
        rows.append({"trajectories": n, **_one("bismut euler", rounds, trajectories=n, seconds=3.0)})
    return rows


def steps(rounds: int, say) -> list[dict[str, Any]]:
    """More steps of 10⁴ trajectories: the memory must not grow."""
    rows = []
    for count in (100, 1_000, 10_000):
        say(f"{count} steps")
        rows.append({"steps": count, **_one("bismut euler", rounds, steps=count)})
    return rows


def bodies(rounds: int, say, largest: int) -> list[dict[str, Any]]:
    """K interacting dipoles: body-steps per second, and pairs per second, (K − 1)/2 for each body."""
    rows = []
    k = 2
    while k <= largest:
        say(f"{k} bodies")
        found = _one("bismut dipoles", rounds, count=k, trajectories=max(16, 4096 // k))
        rows.append({"bodies": k, **found, **({"pairs": found["speed"] * (k - 1) / 2} if "speed" in found else {})})
        k *= 4
    return rows


def _one(name: str, rounds: int, **settings) -> dict[str, Any]:
    return measured((Side(name, 2, tuple(settings.items())),), rounds)[0]
