"""What of a run is complete, what is partial and what is damaged: every committed file is read and compared with its checksum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bismut.errors import ChangedError, StoreError
from bismut.store.layout import BLOCKS, CHECKPOINTS, STATISTICS
from bismut.store.reading import Part, StoredRun, peek, remedy
from bismut.store.stored import values_of
from bismut.wording import first_of

_AGAIN = 20  # looks at what is changed meanwhile, by whoever writes it


@dataclass(frozen=True)
class DataReport:
    """Places of a run by how they are; `corrupt` gives what is wrong and where."""

    run: str
    state: str
    complete: tuple[str, ...]
    partial: tuple[str, ...]
    corrupt: dict[str, tuple[str, ...]]

    @property
    def ok(self) -> bool:
        return not self.corrupt

    @property
    def problems(self) -> list[str]:
        """All that is wrong, wherever it is."""
        return [problem for several in self.corrupt.values() for problem in several]

    def __str__(self) -> str:
        lines = [f"{self.run}: {self.state}; {len(self.complete)} parts complete, {len(self.partial)} partial, {len(self.corrupt)} corrupt"]
        lines += [f"  partial  {place}" for place in self.partial]
        lines += [f"  corrupt  {place}: {first_of(problems)}" for place, problems in self.corrupt.items()]
        return "\n".join(lines)


def damage(path: Path, problems: Sequence[str]) -> str:
    """What is said of a run that is damaged."""
    return "\n  ".join([f"{path} is damaged:", first_of(problems, between="\n  ")]) + f"\n{remedy(path)}"


def verify_data(path: str | Path) -> DataReport:
    """Read everything that was committed, and say what is damaged. A run without a manifest, or of another schema, is refused."""
    seen: dict[str, tuple[Part, tuple[str, ...]]] = {}
    run = peek(path)
    for _ in range(_AGAIN):
        try:
            for place, part in run.parts.items():
                if place not in seen or seen[place][0] != part:
                    seen[place] = part, problems_of(run, place)
            break
        except ChangedError:
            run = peek(path)
    wrong = {place: problems for place, (_, problems) in seen.items() if problems and place in run.parts}
    if run.manifest.problem:
        wrong["manifest.jsonl"] = (run.manifest.problem,)
    sound = [place for place in run.parts if place not in wrong]
    partial = [place for place in sound if place.startswith(f"{CHECKPOINTS}/") or (place == STATISTICS and run.state != "complete")]
    torn = ("manifest.jsonl: half a line at its end, which was not committed",) if run.manifest.torn else ()
    complete = tuple(place for place in sound if place not in partial)
    return DataReport(str(path), str(run), complete, (*partial, *torn), wrong)


def problems_of(run: StoredRun, place: str) -> tuple[str, ...]:
    """What is wrong with a place: all its files, and whether they make arrays."""
    found = []
    for key in run.parts[place].files:
        try:
            run.read(place, key)
        except ChangedError:
            raise
        except StoreError as problem:
            found.append(str(problem))
    if found:
        return tuple(found)
    try:
        if place == STATISTICS:
            values_of(run.results())
        elif place.startswith((f"{BLOCKS}/", f"{CHECKPOINTS}/")):
            run.unpacked(place)
    except ChangedError:
        raise
    except StoreError as problem:
        found.append(str(problem))
    return tuple(found)
