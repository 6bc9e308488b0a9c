"""What an installed bismut has computed: installed.py README RUN ..., in the folder of the runs. Stored runs are finite and native; the first example
of the front page runs as a reader copies it."""

import json
import math
import pathlib
import re
import sys

import bismut as bm

home = pathlib.Path(bm.__file__).parent
assert home.is_relative_to(sys.prefix), home
assert (home / "py.typed").exists()
assert (home / "views" / "page.js").exists()
readme, *runs = sys.argv[1:]
for run in runs:
    assert math.isfinite(float(bm.load(run)["energy"]["mean"][-1])), run
    identity = json.loads(pathlib.Path(run, "provenance.json").read_text())["identity"]
    assert identity["engine"] == "native", (run, identity)
example = re.search(r"```python\n(.*?)```", pathlib.Path(readme).read_text(), re.DOTALL)
assert example, readme
exec(compile(example.group(1), readme, "exec"), {"__name__": "__main__"})
