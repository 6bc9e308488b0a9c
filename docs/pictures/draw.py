"""Run the pages of the tutorial as printed, and keep their pictures here, with few colours so that they are small.

python docs/pictures/draw.py            # all pages
python docs/pictures/draw.py 3 5        # the third and the fifth
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
from PIL import Image

mpl.use("agg")
HERE = Path(__file__).parent.resolve()
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)

for page in sorted((HERE.parent / "tutorial").glob("*.md")):
    if sys.argv[1:] and page.name[0] not in sys.argv[1:]:
        continue
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec("\n".join(BLOCK.findall(page.read_text())), {"__name__": page.stem})
        for drawn in Path(folder).glob("*.png"):
            Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(HERE / drawn.name, optimize=True)
        os.chdir(HERE)
