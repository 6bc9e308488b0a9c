"""One word, one meaning: no class name stands for two things, and words that say nothing are rare as names."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "bismut"
VAGUE = {"found", "words", "kept", "whole", "made"}
TREES = {path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def test_no_class_name_stands_for_two_things():
    places = defaultdict(list)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name.strip("_")].append(f"{path}:{node.lineno}")
    assert len(places) > 500
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_vague_names_are_rare():
    """Variables, attributes, arguments, functions and imports, also inside f-strings."""
    used = [
        (str(path), name)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        for name in (getattr(node, field, None) for field in ("id", "attr", "arg", "name", "asname"))
        if name in VAGUE
    ]
    assert len(used) < 50, used
