"""Extended XYZ, text: ASE, OVITO and most programs of materials read it.

    K
    Lattice="l 0 0 0 l 0 0 0 l" Origin="-l/2 -l/2 -l/2" pbc="T T F" Properties=species:S:1:pos:R:3:... Time=0.5 Step=50
    X  x y z  ...

Columns are `masses` and `momenta`, as ASE has them, `velo` and `orientation`, quaternions (x, y, z, w), as OVITO has them, `inertia`, principal
moments, and `angular_momentum` in the axes of space. Species that are no elements are X, which ASE takes, and stand in a column `kind`. Sites of
bodies have a column `molecule`, the number of their body from 0. Numbers have all digits; positions are not wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bismut.errors import BismutError
from bismut.mechanics import Box
from bismut.sharing.formats import Format
from bismut.sharing.frames import Frames, matrices_of

_UNITS = "angstrom", "dalton", "angstrom * (dalton / eV) ** 0.5"  # ASE's, in which its kinetic energies are eV
_SCALAR_LAST = [1, 2, 3, 0]  # of (w, x, y, z)
# A key begins where a word does: elsewhere nothing is tried, so that the time is that of reading the line once.
_ENTRY = re.compile(r'(?<![^\s"])([^\s="]+)\s*=\s*(?:"([^"]*)"|(\S+))')
_WIDTHS = {"pos": 3, "masses": 1, "mass": 1, "momenta": 3, "velo": 3, "velocities": 3, "vel": 3, "velocity": 3}
_WIDTHS |= {"orientation": 4, "inertia": 3, "angular_momentum": 3, "species": 1, "kind": 1}


def write(frames: Frames, file: Path) -> list[Path]:
    columns = [(name, values) for name, values in _columns(frames) if values is not None]
    elements = frames.elements
    labels = [[name] if elements else ["X", name] for name in frames.species]
    kinds = "species:S:1" if elements else "species:S:1:kind:S:1"
    if frames.molecule is not None:
        labels = [[*name, str(k)] for name, k in zip(labels, frames.molecule, strict=True)]
        kinds += ":molecule:I:1"
    properties = ":".join([kinds, *(f"{name}:R:{values.shape[-1]}" for name, values in columns)])
    with file.open("w", encoding="utf-8") as out:
        for t, (time, step) in enumerate(zip(frames.times, frames.steps, strict=True)):
            head = [*_cell(frames), f"Properties={properties}", f"Time={float(time)!r}", f"Step={int(step)}", f'made_by="{_quoted(frames.summary)}"']
            rows = np.concatenate([values[t] if values.ndim == 3 else values for _, values in columns], 1)
            lines = [" ".join([*name, *map(repr, row)]) for name, row in zip(labels, rows.tolist(), strict=True)]
            out.write("\n".join([str(len(labels)), " ".join(head), *lines]) + "\n")
    return [file]


def _columns(frames: Frames) -> list[tuple[str, Any]]:
    """Names and values, (T, K, n), or (K, n) where they do not change."""
    mass = None if frames.mass is None else frames.mass[:, None]
    return [
        ("pos", frames.x),
        ("masses", mass),
        ("momenta", None if frames.v is None or mass is None else frames.v * mass),
        ("velo", frames.v),
        ("orientation", None if frames.q is None else frames.q[..., _SCALAR_LAST]),
        ("inertia", frames.moments),
        ("angular_momentum", frames.turning),
    ]


def _cell(frames: Frames) -> list[str]:
    flags = f'pbc="{" ".join("T" if one else "F" for one in frames.periodic)}"'
    if not frames.periodic.any():
        return [flags]
    lattice, origin = (" ".join(map(repr, array.ravel().tolist())) for array in (np.diag(frames.sides), -frames.sides / 2))
    return [f'Lattice="{lattice}"', f'Origin="{origin}"', flags]


def _quoted(text: str) -> str:
    return text.replace('"', "'").replace("\\", "/").replace("\n", " ")


def read(file: Path, frame: int) -> Frames:
    """One frame, of any program: pos, and what there is of momenta, masses, velocities and orientations."""
    head, rows = _chosen(file, frame)
    entries = {key: quoted or bare for key, quoted, bare in _ENTRY.findall(head)}
    columns = _arrays(file, entries.get("Properties", "species:S:1:pos:R:3"), rows)
    if "pos" not in columns:
        raise BismutError(f"{file} has no column pos. Its Properties are {entries.get('Properties')}.")
    one = lambda *names: next((columns[name] for name in names if name in columns), None)
    mass, q, moments, turning = one("masses", "mass"), one("orientation"), one("inertia"), one("angular_momentum")
    momenta, v = one("momenta"), one("velo", "velocities", "vel", "velocity")
    if v is None and momenta is not None and mass is not None:
        v = momenta / mass
    q = None if q is None else q[:, np.argsort(_SCALAR_LAST)]
    spin = None if q is None or turning is None else np.einsum("kji,kj->ki", matrices_of(q), turning)
    first = lambda array: None if array is None else array[None]
    return Frames(
        times=np.array([_number(entries, "Time", "time")]),
        steps=np.array([0 if np.isnan(step := _number(entries, "Step", "step")) else int(step)]),
        x=columns["pos"][None],
        v=first(v),
        q=first(q),
        L=first(spin),
        mass=None if mass is None else mass[:, 0],
        moments=moments,
        species=tuple(map(str, (columns["kind"] if "kind" in columns else columns.get("species", np.full((len(rows), 1), "X")))[:, 0])),
        box=_box(file, entries),
    )


def _number(entries: dict[str, str], *names: str) -> float:
    """The first of several entries that is a number."""
    for name in names:
        try:
            return float(entries[name])
        except (KeyError, ValueError):
            continue
    return float("nan")


def _chosen(file: Path, frame: int) -> tuple[str, list[list[str]]]:
    """Comment and rows of a frame; a negative one is counted from the end."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BismutError(f"{file} cannot be read as text: {problem}.") from None
    all_frames = list(_frames(file, text.splitlines()))
    if not -len(all_frames) <= frame < len(all_frames):
        raise BismutError(f"{file} has {len(all_frames)} frames, so there is no frame {frame}.")
    head, lines = all_frames[frame]
    return head, [line.split() for line in lines]


def _frames(file: Path, lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        if not re.fullmatch(r"[0-9]{1,12}", lines[at].strip()) or at + 2 + int(lines[at]) > len(lines) or int(lines[at]) == 0:
            raise BismutError(f"{file}, line {at + 1}: expected a number of particles and as many lines, got {lines[at][:40]!r}.")
        count = int(lines[at])
        yield lines[at + 1], lines[at + 2 : at + 2 + count]
        at += 2 + count


def _arrays(file: Path, properties: str, rows: list[list[str]]) -> dict[str, np.ndarray]:
    """The columns by name, each (K, n)."""
    parts = properties.split(":")
    columns, at = {}, 0
    try:
        for name, kind, width in zip(parts[::3], parts[1::3], map(int, parts[2::3]), strict=True):
            part = [row[at : at + width] for row in rows]
            columns[name], at = np.array(part, float if kind in "RI" else str).reshape(len(rows), width), at + width
    except ValueError:
        raise BismutError(f"{file} does not match its own header: Properties={properties[:200]}.") from None
    if uneven := [name for name, array in columns.items() if array.shape[1] != _WIDTHS.get(name, array.shape[1])]:
        raise BismutError(f"{file}: expected {_WIDTHS[uneven[0]]} columns of {uneven[0]}, got {columns[uneven[0]].shape[1]}.")
    return columns


def _box(file: Path, entries: dict[str, str]) -> Box | None:
    if "Lattice" not in entries:
        return None
    numbers, flags = entries["Lattice"].split(), np.array([word in ("T", "True", "1") for word in entries.get("pbc", "T T T").split()])
    try:
        lattice = np.array(numbers, float).reshape(3, 3)
    except ValueError:
        raise BismutError(f"{file}: expected nine numbers in Lattice, got {entries['Lattice'][:100]!r}.") from None
    if flags.shape != (3,):
        raise BismutError(f'{file}: expected three of T and F in pbc, such as "T T F", got {entries["pbc"][:100]!r}.')
    if np.abs(lattice - np.diag(np.diag(lattice))).max() > 0:
        raise BismutError(f"{file} has a tilted box, {lattice.tolist()}; only rectangular boxes can be read.")
    return Box(np.where(flags, np.diag(lattice), np.inf)) if flags.any() else None


FORMAT = Format("extxyz", (".extxyz", ".xyz"), "extended XYZ, text with all digits: ASE, OVITO", True, write, read, units=_UNITS)
