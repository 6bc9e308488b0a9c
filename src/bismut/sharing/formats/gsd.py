"""GSD, the format of HOOMD-blue; OVITO, freud, MDAnalysis and fresnel read it.

    quaternions (w, x, y, z);      x = position + image · side, wrapped about the origin;      angmom P = 2 q ⊗ (0, L)

Numbers are in single precision, which every reader takes: a state comes back to about 1e−7 of the box. An open system is in a box that holds it.
Time is in the log, as `time`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bismut.errors import BismutError
from bismut.mechanics import Box
from bismut.sharing.formats import Format, require
from bismut.sharing.frames import Frames

_UNITS = "nm", "dalton", "ps"  # energies in kJ/mol, the molecular units that HOOMD-blue proposes; GSD itself has none
_POSITION = 12  # bytes


def write(frames: Frames, file: Path) -> list[Path]:
    hoomd = require("gsd.hoomd", "GSD")
    sides, types = frames.sides, frames.types
    with hoomd.open(name=str(file), mode="w") as out:
        for t in range(len(frames.times)):
            frame, particles = hoomd.Frame(), hoomd.Frame().particles
            frame.particles = particles
            frame.configuration.step = int(frames.steps[t])
            frame.configuration.dimensions = max(2, frames.plane)
            frame.configuration.box = [*sides[:2], sides[2] if frames.plane == 3 else 0.0, 0.0, 0.0, 0.0]
            frame.log["time"] = np.array([frames.times[t]])
            # Wrapped in single precision: what is rounded up to the end of the box goes on at its beginning.
            image = np.where(frames.periodic, np.floor(frames.x[t] / sides + 0.5), 0.0)
            particles.N, particles.types, particles.typeid = len(types), list(frames.kinds), types
            particles.position, particles.image = frames.x[t] - image * sides, image.astype(np.int32)
            particles.mass, particles.moment_inertia = frames.mass, frames.moments
            if frames.v is not None:
                particles.velocity = frames.v[t]
            if frames.q is not None:
                particles.orientation = frames.q[t]
                if frames.L is not None:
                    spin = np.concatenate([np.zeros((len(types), 1)), frames.L[t]], 1)
                    particles.angmom = 2 * _product(frames.q[t], spin)
            if frames.bonds is not None and len(frames.bonds):
                bonds = frame.bonds
                bonds.N, bonds.types, bonds.group = len(frames.bonds), ["bond"], frames.bonds.astype(np.uint32)
                bonds.typeid = np.zeros(len(frames.bonds), np.uint32)
            out.append(frame)
    return [file]


def read(file: Path, frame: int) -> Frames:
    hoomd = require("gsd.hoomd", "GSD")
    try:
        opened = hoomd.open(name=str(file), mode="r")
    except (OSError, RuntimeError) as problem:
        raise BismutError(f"{file} cannot be read as GSD: {problem}.") from None
    with opened:
        if not -len(opened) <= frame < len(opened):
            raise BismutError(f"{file} has {len(opened)} frames, so there is no frame {frame}.")
        _check_count(file, opened, frame % len(opened))
        snapshot = opened[frame]
    particles, box = snapshot.particles, np.asarray(snapshot.configuration.box, float)
    if particles.N == 0:
        raise BismutError(f"Frame {frame} of {file} holds no particles.")
    if np.abs(box[3:]).max() > 0:
        raise BismutError(f"{file} has a tilted box, {box.tolist()}; only rectangular boxes can be read.")
    as_floats = lambda array: np.asarray(array, float)
    q = as_floats(particles.orientation)
    spin = 0.5 * _product(q * np.array([1.0, -1.0, -1.0, -1.0]), as_floats(particles.angmom))[:, 1:]
    moments = as_floats(particles.moment_inertia)
    return Frames(
        times=np.asarray(snapshot.log.get("time", [np.nan]), float),
        steps=np.array([int(snapshot.configuration.step)]),
        x=(as_floats(particles.position) + as_floats(particles.image) * box[:3])[None],
        v=as_floats(particles.velocity)[None],
        q=q[None],
        L=spin[None],
        mass=as_floats(particles.mass),
        moments=moments if moments.any() else None,
        species=tuple(particles.types[i] for i in particles.typeid),
        box=Box(np.where(box[:3] > 0, box[:3], np.inf)),
        plane=int(snapshot.configuration.dimensions),
    )


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a ⊗ b = (a₀b₀ − a·b,  a₀b + b₀a + a × b), along the last axis."""
    w = a[..., :1] * b[..., :1] - np.sum(a[..., 1:] * b[..., 1:], -1, keepdims=True)
    return np.concatenate([w, a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])], -1)


def _check_count(file: Path, opened: Any, frame: int) -> None:
    """Refuse a number of particles whose positions the file cannot hold, before memory is asked for."""
    names = [at for at in (frame, 0) if opened.file.chunk_exists(frame=at, name="particles/N")]
    count = int(opened.file.read_chunk(frame=names[0], name="particles/N")[0]) if names else 0
    if count * _POSITION > file.stat().st_size:
        raise BismutError(f"{file} is damaged: it has {file.stat().st_size} bytes, too few for the positions of {count} particles.")


FORMAT = Format("gsd", (".gsd",), "GSD of HOOMD-blue, in single precision: OVITO, freud, MDAnalysis", True, write, read, units=_UNITS)
