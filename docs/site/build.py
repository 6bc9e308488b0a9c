"""The documentation site: python docs/site/build.py writes build/site. Warnings are errors; every link within it is followed.

--fresh   begin from nothing
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
os.environ.setdefault("JAX_ENABLE_X64", "1")

import links
from sphinx.cmd.build import build_main

import pages

SITE, EXTRA = ROOT / "build" / "site", ROOT / "build" / "site-extra"


def main() -> int:
    clock = time.process_time()
    if "--fresh" in sys.argv:
        for folder in (SITE, EXTRA, pages.SOURCE, ROOT / "build" / "site-doctrees"):
            shutil.rmtree(folder, ignore_errors=True)
    from gallery import gallery

    _fonts(ROOT / "build" / "site-fonts")
    linked = pages.write(gallery(EXTRA / "view"))
    (ROOT / "build" / "site-source.json").write_text(json.dumps(linked))
    options = ["-W", "--keep-going", "-n", "-q", "-a", "-b", "html", "-c", str(HERE), "-d", str(ROOT / "build" / "site-doctrees")]
    if failed := build_main([*options, str(pages.SOURCE), str(SITE)]):
        return failed
    if broken := links.broken(SITE):
        print("\n".join(broken), file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in SITE.rglob("*") if file.is_file())
    print(f"{SITE.relative_to(ROOT)}/index.html: {size / 1e6:.1f} MB, {time.process_time() - clock:.0f} s of processor time")
    return 0


def _fonts(folder: Path) -> None:
    """Letters of formulas, from matplotlib, with their licence."""
    import matplotlib

    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("STIXGeneral.ttf", "LICENSE_STIX"):
        shutil.copyfile(fonts / name, folder / name)


if __name__ == "__main__":
    sys.exit(main())
