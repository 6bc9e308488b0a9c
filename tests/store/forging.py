"""Run folders whose documents say something else than bismut would write, with checksums that are right: who forges one can compute them."""

import json
import random
import struct
from pathlib import Path

import google_crc32c
import numpy as np

from bismut.store import manifest as lines
from bismut.store.files import checksum_of
from bismut.store.zarr_reader import unpack
from bismut.store.zarr_writer import pack

DEEP = json.loads("[" * 200 + "]" * 200)
VALUES = (None, [], {}, "", "\x1b[31mred\x07", 10**30, -1, 0, 1.5, True, "NaN", DEEP, "A" * 5000, "\ud800", [1, 2, 3], {"a": 1}, 10**11, 2**62)
TEXTS = (b"", b"[]", b"{}", b'"x"', b"\xff\xfe", b"NaN", b"[" * 100_000, b'{"a": NaN}', b"null")
LOCKS = (
    b"",
    b"[" * 100_000,
    b'{"process": "x"}',
    b'{"process": 1e99, "host": []}',
    b'{"host": "\\u001b[31mevil", "process": 1, "began": "x", "locked": "\\u001b]0;x\\u0007"}',
    json.dumps({"host": "A" * 5000, "process": 10**40}).encode(),
)


def entries_of(folder: Path) -> list:
    return [json.loads(line)["entry"] for line in (folder / lines.MANIFEST).read_bytes().split(b"\n")[:-1]]


def sign(folder: Path, entries: list) -> None:
    """A manifest of these entries, with right checks."""
    check, text = b"", b""
    for entry in entries:
        body = json.dumps(entry).encode()
        check = lines._chained(check, body)
        text += lines._line(check, body) + b"\n"
    (folder / lines.MANIFEST).write_bytes(text)


def replace(folder: Path, entries: list, place: str, key: str, data: bytes) -> None:
    """Another file, and its seal where it was committed last."""
    entry = next(entry for entry in reversed(entries) if place in entry.get("places", {}))
    entry["places"][place][key] = checksum_of(data)
    if place in entry.get("texts", {}):
        entry["texts"][place] = data.decode("utf-8", "replace")
    (folder / place / key if key else folder / place).write_bytes(data)


def changed(chance: random.Random, document):
    """One value somewhere is another, or is missing."""
    if chance.random() < 0.1:
        return chance.choice([[], {}, "x", 3, None, DEEP])
    node = document = json.loads(json.dumps(document))
    while chance.random() < 0.7:
        inner = [part for part in (node.values() if isinstance(node, dict) else node) if isinstance(part, dict | list) and part]
        if not inner:
            break
        node = chance.choice(inner)
    if node:
        name = chance.choice(list(node)) if isinstance(node, dict) else chance.randrange(len(node))
        if chance.random() < 0.3:
            del node[name]
        else:
            node[name] = chance.choice(VALUES)
    return document


def forge(chance: random.Random, folder: Path) -> str:
    """Change one thing in a folder; returns what."""
    entries = entries_of(folder)
    what = chance.choice(["provenance.json", "certificate.json", "manifest", "manifest", "zarr.json", "chunk", "block", "block", "block", "lock"])
    if what == "lock":
        (folder / "lock").write_bytes(chance.choice(LOCKS))
        return what
    if what.endswith(".json") and what != "zarr.json":
        text = (folder / what).read_text() if (folder / what).is_file() else "{}"
        if (folder / what).is_file():
            replace(
                folder, entries, what, "", chance.choice(TEXTS) if chance.random() < 0.2 else json.dumps(changed(chance, json.loads(text))).encode()
            )
    elif what == "manifest":
        at = chance.randrange(len(entries))
        entries[at] = changed(chance, entries[at])
    elif what in ("zarr.json", "chunk"):
        files = [key for key in entries[-1]["places"]["statistics"] if key.endswith("zarr.json") == (what == "zarr.json")]
        key = chance.choice(files)
        data = (folder / "statistics" / key).read_bytes()
        if what == "zarr.json":
            data = json.dumps(changed(chance, json.loads(data))).encode()
        else:
            body = chance.choice([b"", data[:-5], data[:-4] + data[:-4], b"\xff" * len(data[:-4])])
            data = body + struct.pack("<I", google_crc32c.value(body))
        replace(folder, entries, "statistics", key, data)
    else:
        place = chance.choice(sorted(place for entry in entries for place in entry.get("places", {}) if place.startswith("blocks/")))
        arrays = unpack((folder / place).read_bytes(), place)
        what = f"block {change_array(chance, arrays)}"
        replace(folder, entries, place, "", pack(arrays))
    sign(folder, entries)
    return what


def change_array(chance: random.Random, arrays: dict) -> str:
    """One array of another shape, type or value, missing, or a group."""
    node, names = arrays, []
    while isinstance(node, dict):
        inside, name = node, chance.choice(sorted(node))
        node, names = node[name], [*names, name]
        if isinstance(node, dict) and not node:
            break
    if isinstance(node, dict):
        return "nothing"
    if name == "form":
        text = chance.choice(["", "[", "3", "[" * 5000]) if chance.random() < 0.3 else json.dumps(changed(chance, json.loads(str(node))))
        inside[name] = np.asarray(text.encode("utf-8", "replace").decode())
        return "form"
    extreme = np.full_like(node, {"f": np.nan, "b": True}.get(node.dtype.kind, 2**31 if node.dtype.itemsize == 8 else 1))
    choices = [node[None], np.asarray("text"), np.zeros(3, np.float32), extreme, np.full_like(node, 7), {"x": node}, None]
    inside[name] = chance.choice(choices)
    if inside[name] is None:
        del inside[name]
    return "/".join(names)
