"""Whatever a folder says, what comes of it is a result or an error of ours: in bounded time and memory, and nothing of it commands a terminal."""

import copy
import functools
import os
import random
import shutil
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import bismut as bm
from bismut.cli.main import app
from bismut.documents import DEPTH, check, table
from bismut.ensembles import request
from bismut.ensembles.block_codec import Expected, block_result
from bismut.errors import BismutError, StoreError
from bismut.formatting import printable
from bismut.store import open_run, verify_data
from bismut.store.zarr_reader import unpack
from bismut.store.zarr_writer import pack
from tests.store import forging, writers

SCHEME = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q, noise=lambda q: 0.3 * q))
START = SCHEME.start(np.ones(1), velocity=np.zeros(1))
OBSERVE = {"energy": bm.energy, "mean": bm.time_average(bm.energy), "kept": bm.paths([0])}
RUN = {"step": 0.1, "trajectories": 6, "block": 3, "every": 2, "observe": OBSERVE, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    folder = tmp_path_factory.mktemp("right") / "run"
    bm.simulate(SCHEME, START, steps=6, store=folder, certify=True, **RUN)
    return folder


def loaded(folder):
    return [variable.values for group in bm.load(folder).children.values() for variable in group.variables.values()]


def told(folder, *words: str) -> str:
    """What a command prints; what it raises is of ours."""
    found = CliRunner().invoke(app, [words[0], str(folder), *words[1:]])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exc_info
    return found.output


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 120), marks=pytest.mark.slow)])
def test_forged_folders_give_results_or_errors_of_ours(tmp_path, right, seeds):
    """One value of one document is changed, in folders whose checksums are right; seeded, so a failure can be repeated by its number."""
    refused = 0
    for seed in seeds:
        chance, folder = random.Random(seed), tmp_path / "run"
        shutil.copytree(right, folder)
        what, clock = forging.forge(chance, folder), time.process_time()
        for act in (
            loaded,
            lambda folder: told(folder, "info"),
            lambda folder: told(folder, "info", "--json"),
            lambda folder: bm.export(folder, tmp_path / "table", to="csv"),
            lambda folder: told(folder, "plot", "--list"),
            *([lambda folder: told(folder, "plot", "--out", str(tmp_path / "pictures"))] if seed % 12 == 0 else []),  # a second each
            verify_data,
            lambda folder: bm.simulate(SCHEME, START, steps=8, store=folder, extend=True, **RUN),
        ):
            try:
                output = act(folder)
                assert not isinstance(output, str) or printable(output) == output, (seed, what)
            except (BismutError, bm.errors.SimulationError):
                refused += 1
            except BaseException as problem:
                raise AssertionError(f"seed {seed}, {what}: {type(problem).__name__}: {problem}") from problem
            finally:
                shutil.rmtree(tmp_path / "table", ignore_errors=True)
        assert time.process_time() - clock < 20
        shutil.rmtree(folder)
    assert refused > len(seeds)


@pytest.mark.parametrize("kind", ["fifo", "sparse", "folder", "link"])
def test_a_lock_that_is_no_small_file_neither_hangs_nor_exhausts(tmp_path, kind):
    writers.saved(tmp_path / "a", 1.0)
    lock = tmp_path / "a" / "lock"
    if kind == "fifo":
        os.mkfifo(lock)
    elif kind == "sparse":
        with lock.open("wb") as file:
            file.truncate(20 * 2**30)
    elif kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to("/dev/zero")
    clock = time.monotonic()
    assert bm.load(tmp_path / "a").attrs["number"] == 1.0
    assert open_run(tmp_path / "a").state == "complete"
    try:
        bm.store.claim(tmp_path / "a", resume=True).close()
    except StoreError as problem:
        refused = str(problem)
    else:
        refused = ""
    assert bool(refused) == (kind != "sparse")  # that one is a file, which the next writer takes
    assert time.monotonic() - clock < 10


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"record": None}, "record"),
        ({"variant": 10**30}, "expected"),
        ({"asked": {"steps": 3, "variants": 10**11}}, "variants"),
        ({"asked": [1]}, "asked: expected a table"),
        ({"done": {"trajectories": [1, "x"], "steps": 3}}, "trajectories"),
        ({"state": "\ud800"}, "is no text"),
        ({"places": {"x" * 5000: {"": [0, ""]}}}, "not a path"),
        ({"places": {"a": {"": [-1, ""]}}}, "SHA-256"),
        ({"texts": {"run.toml": 5}}, "expected a text"),
        ({"drops": "blocks/0-0.zip"}, "drops: expected a list"),
    ],
)
def test_an_entry_of_the_manifest_is_what_bismut_writes_or_refused(tmp_path, right, change, said):
    shutil.copytree(right, tmp_path / "run")
    entries = forging.entries_of(tmp_path / "run")
    block = next(entry for entry in entries if entry["what"] == "blocks")
    block.update(change)
    if change == {"record": None}:
        del block["record"]
    forging.sign(tmp_path / "run", entries)
    with pytest.raises(StoreError, match="manifest") as refused:
        open_run(tmp_path / "run")
    assert said in str(refused.value) or "record" in str(change)


SHAPES = {
    "another axis": lambda array: array[None],
    "a last axis": lambda array: array[..., None],
    "one number": lambda array: np.asarray(array.sum()),
    "twice": lambda array: np.concatenate([np.atleast_1d(array)] * 2),
    "complex": lambda array: array.astype(complex),
}


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A run that every observer watched, and the way to ask for it again."""
    first = lambda state: state.q[0]
    observe = {
        "energy": bm.energy,
        "mean": bm.time_average(first),
        "kept": bm.paths([0, 4]),
        "lags": bm.autocorrelation(first, lags=3),
        "counts": bm.histogram(first, range=(-3, 3), bins=8),
        "ranks": bm.quantiles(first),
        "ends": bm.extremes(first),
        "passage": bm.first_passage(lambda state: state.q[0] - 1.1),
        "rows": bm.values(first),
        "section": bm.section(first, at=first),
        "squares": bm.mean_squared_displacement(lags=3),
        "own": bm.Observer(lambda state: state.q, lambda memory, state: memory + state.q, lambda memory: memory),
    }
    folder, run = tmp_path_factory.mktemp("watched") / "run", {**RUN, "observe": observe, "steps": 6}
    bm.simulate(SCHEME, START, store=folder, **run)
    return folder, run


def arrays_in(tree, names=()):
    return [place for name, part in tree.items() for place in (arrays_in(part, (*names, name)) if isinstance(part, dict) else [(*names, name)])]


def changed_in(arrays, names, change):
    """The arrays of a block with one of them changed; None if it stays what it is."""
    *above, last = names
    node = functools.reduce(dict.__getitem__, above, arrays)
    before, node[last] = node[last], change(node[last])
    return None if (node[last].shape, node[last].dtype) == (before.shape, before.dtype) else arrays


@pytest.mark.parametrize("part", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_summary_of_other_shapes_is_never_merged(watched, part):
    """Of every observer each array in turn has another shape or type: it would be broadcast, and give other numbers."""
    folder, run = watched
    asked = request(SCHEME, START, **{name: value for name, value in run.items() if name != "progress"})
    expected, data = Expected(asked), (folder / "blocks" / "0-0.zip").read_bytes()
    right = unpack(data, "right")
    block_result(expected, 0, 0, right)
    one = lambda names: names[0] == "summaries" and (names[1] != "ranks" or names[4] == "0")  # of sketches, which are alike
    places = [names for names in arrays_in(right) if one(names)]
    assert {names[1] for names in places} == set(run["observe"])
    cases = [(names, words) for names in places for words in SHAPES]
    for names, words in [case for number, case in enumerate(cases) if (number + number // 5) % part == 0]:  # each array, and each change, in turn
        arrays = changed_in(copy.deepcopy(right), names, SHAPES[words])
        if arrays is None or (names[1], words) == ("ranks", "twice"):  # as many values as there happen to be
            continue
        with pytest.raises(StoreError, match=f"{names[1]}.*other shapes or types"):
            block_result(expected, 0, 0, arrays)


def test_a_forged_axis_is_refused_where_the_run_is_asked_for_again(tmp_path, watched):
    folder, run = watched
    shutil.copytree(folder, tmp_path / "run")
    entries = forging.entries_of(tmp_path / "run")
    for place in ("blocks/0-0.zip", "blocks/0-1.zip"):
        arrays = unpack((folder / place).read_bytes(), place)
        changed_in(arrays, ("summaries", "energy", "mean"), SHAPES["a last axis"])
        forging.replace(tmp_path / "run", entries, place, "", pack(arrays))
    forging.sign(tmp_path / "run", entries)
    with pytest.raises(StoreError, match="does not fit this run"):
        bm.simulate(SCHEME, START, store=tmp_path / "run", **run)


def test_documents_are_bounded():
    with pytest.raises(StoreError, match=f"nested more deeply than {DEPTH}"):
        check({"a": forging.DEEP}, "x.json", table())
    with pytest.raises(StoreError, match="is no text"):
        check({"\ud800": 1}, "x.json", table())


def test_what_would_command_a_terminal_is_spelled():
    assert printable("a\x1b[31mb\x07\r\x9b\u202e\ud800") == r"a\x1b[31mb\x07\r\x9b\u202e\ud800"
    assert printable("γ → ∂²L, one\n\ttwo ✓") == "γ → ∂²L, one\n\ttwo ✓"
