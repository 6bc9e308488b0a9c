"""Run the pages of the tutorial as printed, draw the figures, and keep the pictures here, with few colours so that they are small.

python docs/pictures/draw.py            # all pages, and `bismut figure all`
python docs/pictures/draw.py 3 5        # the third page and the fifth
python docs/pictures/draw.py figures    # the figures alone, in about ten minutes
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
from PIL import Image

mpl.use("agg")
HERE = Path(__file__).parent.resolve()
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)

WANTED = sys.argv[1:]


def keep(folder: str) -> None:
    for drawn in Path(folder).glob("*.png"):
        Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(HERE / drawn.name, optimize=True)


for page in sorted((HERE.parent / "tutorial").glob("*.md")):
    if WANTED and page.name[0] not in WANTED:
        continue
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec("\n".join(BLOCK.findall(page.read_text())), {"__name__": page.stem})
        keep(folder)
        os.chdir(HERE)
if not WANTED or "figures" in WANTED:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([Path(sys.executable).with_name("bismut"), "figure", "all", "--out", folder], check=True)
        keep(folder)
