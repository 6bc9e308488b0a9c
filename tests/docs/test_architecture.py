"""ARCHITECTURE.md names every package and every top-level module, and only files that exist; it stays short. Import contracts leave nothing out."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bismut"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
QUOTED = re.findall(r"`([^`\n]+)`", PAGE)


def test_every_package_and_top_level_module_is_named():
    packages = [f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")]
    modules = [path.name for path in SOURCE.glob("*.py")]
    assert len(packages) > 10
    assert not [name for name in packages + modules if name not in QUOTED]


def test_every_file_that_is_named_exists():
    named = [name for name in QUOTED if re.fullmatch(r"[\w./-]+\.(py|md|toml|png)|[\w./-]+/", name)]
    assert len(named) > 100
    assert not [name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()]


def test_it_is_read_in_ten_minutes():
    decisions = re.findall(r"^- \*\*.*(?:\n  .*)*", PAGE, re.MULTILINE)
    assert 25 < len(decisions) < 50
    assert all(decision.count("\n") < 3 for decision in decisions)
    assert len(PAGE.split()) < 3000


CONTRACTS = {one["name"]: one for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]}
TOP = {f"bismut.{path.stem}" for path in SOURCE.glob("*.py")} | {f"bismut.{path.parent.name}" for path in SOURCE.glob("*/__init__.py")}


def test_contracts_of_actions_name_every_action():
    """All but the base classes, which schemes and flows are written with."""
    actions = {f"bismut.actions.{path.stem}" for path in (SOURCE / "actions").glob("*.py")}
    actions -= {f"bismut.actions.{name}" for name in ("__init__", "action", "discrete_hamiltonian")}
    assert len(actions) > 5
    assert set(CONTRACTS["Actions do not know each other"]["modules"]) == actions
    assert set(CONTRACTS["Flows name no concrete action"]["forbidden_modules"]) == actions | {"bismut.actions"}


def test_one_package_knows_each_library():
    """Contracts that name who may import a library forbid it to everything else; what is imported by name, with `require`, is no exception."""
    for name, owner in {
        "Only figures draw": "figures",
        "Only sharing knows formats of others": "sharing",
        "Only executors know Dask": "executors",
    }.items():
        forbidden = CONTRACTS[name]["forbidden_modules"]
        assert set(CONTRACTS[name]["source_modules"]) == TOP - {"bismut.__init__", f"bismut.{owner}"}
        required = re.compile(rf"""(?:require|import_module)\(["'](?:{"|".join(forbidden)})\b""")
        for path in SOURCE.rglob("*.py"):
            assert owner in path.parts or not required.search(path.read_text(encoding="utf-8")), path
