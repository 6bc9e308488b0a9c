"""`bismut view`: a page of a run that kept trajectories, and words where it kept none."""

import json


def test_a_run_with_paths_becomes_a_page(bismut, tmp_path):
    made = bismut("run", "heavy-top", "--observe", "energy,paths", "--steps", 4, "--trajectories", 2, "--out", "top")
    assert made.exit_code == 0, made.stderr
    seen = bismut("view", "top", "--html", "page.html", "--json")
    assert seen.exit_code == 0, seen.stderr
    told = json.loads(seen.stdout)
    assert (told["trajectories"], told["bytes"]) == (2, (tmp_path / "page.html").stat().st_size)
    assert "angular speed" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_page_is_no_stranger_in_the_folder_of_the_run(bismut, tmp_path):
    """It lies with the pictures, and the run can be replaced as before."""
    words = ("run", "heavy-top", "--observe", "paths", "--steps", 3, "--trajectories", 1, "--out", "top")
    assert bismut(*words).exit_code == 0
    seen = bismut("view", "top")
    assert seen.exit_code == 0, seen.stderr
    assert (tmp_path / "top" / "pictures" / "view.html").is_file()
    assert bismut("verify", "top", "--data").exit_code == 0
    replaced = bismut(*words, "--overwrite")
    assert replaced.exit_code == 0, replaced.stderr


def test_a_run_without_paths_says_how_to_keep_some(bismut):
    assert bismut("run", "oscillator", "--observe", "energy", "--steps", 4, "--trajectories", 2, "--out", "some").exit_code == 0
    seen = bismut("view", "some")
    assert seen.exit_code == 2
    assert "--observe paths" in seen.stderr


def test_kept_trajectories_become_an_animation(bismut, tmp_path):
    from PIL import Image

    assert bismut("run", "heavy-top", "--observe", "paths", "--steps", 3, "--trajectories", 1, "--every", 1, "--out", "top").exit_code == 0
    made = bismut("plot", "top", "--animate")
    assert made.exit_code == 0, made.stderr
    with Image.open(tmp_path / "top" / "pictures" / "paths.gif") as film:
        assert film.n_frames == 4
    assert bismut("plot", "top", "--animate", "--format", "avi").exit_code == 2


def test_what_stands_still_is_drawn_once_however_many_frames(bismut, monkeypatch):
    """Panes, grids and numbers took nine tenths of the time of an animation."""
    from mpl_toolkits.mplot3d import Axes3D

    drawn, draw = [], Axes3D.draw
    monkeypatch.setattr(Axes3D, "draw", lambda self, renderer: (drawn.append(1), draw(self, renderer))[1])
    counts = []
    for steps in (3, 12):
        bismut("run", "heavy-top", "--observe", "paths", "--steps", steps, "--trajectories", 1, "--every", 1, "--out", f"top{steps}")
        drawn.clear()
        assert bismut("plot", f"top{steps}", "--animate").exit_code == 0
        counts.append(len(drawn))
    assert counts[0] == counts[1] > 0
