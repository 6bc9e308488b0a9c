"""Run the notebooks, and keep what they show: python docs/notebooks/execute.py [NAME ...]. Tests run them by the same function.

A cell is run by IPython in this process, without a kernel and its ports. Of what it shows, text and small pictures are kept; pages of moving bodies
carry a program of a megabyte, so their text stands for them.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LARGEST = 40_000  # characters of one output
HEAD = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
}


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with what its cells print and show."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.core.pylabtools import select_figure_formats
    from traitlets.config import Config

    class Shown(DisplayHook):
        """The last value of a cell, shown as a notebook shows it and not as a terminal does."""

        def __call__(self, result=None):
            if result is not None and not self.quiet():
                self.shell.display_pub.publish(*self.shell.display_formatter.format(result))

    class Shell(InteractiveShell):
        displayhook_class = Shown

        def enable_gui(self, gui=None):
            """There is no screen."""

    InteractiveShell.clear_instance()
    with tempfile.TemporaryDirectory() as home:
        shell = Shell.instance(ipython_dir=home, config=Config({"HistoryManager": {"enabled": False}}))
        shell.enable_matplotlib("inline")
        select_figure_formats(shell, {"png"}, bbox_inches="tight")  # the backend does it for the first shell of a process only
        cells = [_run(cell, shell) if cell["cell_type"] == "code" else cell for cell in notebook["cells"]]
    Shell.clear_instance()
    numbered = [dict(cell, id=f"cell-{number}") for number, cell in enumerate(cells)]
    return {"cells": numbered, "metadata": HEAD, "nbformat": 4, "nbformat_minor": 5}


def _run(cell: dict[str, Any], shell: Any) -> dict[str, Any]:
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        result = shell.run_cell("".join(cell["source"]), store_history=True)
    result.raise_error()
    outputs = []
    if captured.stdout:
        outputs.append({"output_type": "stream", "name": "stdout", "text": captured.stdout.splitlines(keepends=True)})
    for shown in captured.outputs:
        if data := {kind: kept for kind, value in shown.data.items() if len(kept := _kept(kind, value)) <= LARGEST}:
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return dict(cell, outputs=outputs, execution_count=shell.execution_count - 1)


def _kept(kind: str, value: Any) -> str:
    """An output as a notebook holds it; pictures with few colours, so that they are small."""
    if kind != "image/png":
        return str(value)
    from PIL import Image

    picture, small = value if isinstance(value, bytes) else base64.b64decode(value), io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def main() -> None:
    chosen = [path for path in sorted(HERE.glob("*.ipynb")) if not sys.argv[1:] or path.stem in sys.argv[1:]]
    for path in chosen:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            done = executed(notebook)
        path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
