"""What is said of the package in several places is the same: version, dependencies, licence."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def split(requirement: str) -> tuple[str, frozenset[str]]:
    name, versions = re.fullmatch(r"([\w.-]+)\s*(.*)", requirement).groups()
    return name, frozenset(versions.replace(" ", "").split(","))


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    run = [line for line in recipe["requirements"]["run"] if not line.startswith("python ")]
    assert {split(line) for line in run} == {split(line) for line in PROJECT["dependencies"]}
    optional = {"matplotlib-base": "matplotlib", "dask-core": "dask"}
    extras = {split(line) for name in ("figures", "view", "cluster", "share") for line in PROJECT["optional-dependencies"][name]}
    constraints = {(optional.get(name, name), versions) for name, versions in map(split, recipe["requirements"]["run_constraints"])}
    assert constraints == extras
    assert recipe["context"] == {"version": PROJECT["version"], "python_min": PROJECT["requires-python"].removeprefix(">=")}
    assert recipe["about"]["license"] == PROJECT["license"]


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"], citation["title"]) == (PROJECT["version"], PROJECT["license"], PROJECT["name"])
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]


def test_the_package_is_typed_and_names_its_extras():
    assert (ROOT / "src" / "bismut" / "py.typed").exists()
    readme = (ROOT / "README.md").read_text()
    assert PROJECT["optional-dependencies"]["all"] == ["bismut[figures,view,cluster,share]"]
    assert all(f"[{name}]" in readme for name in ("all", "figures", "view", "cluster", "share"))
