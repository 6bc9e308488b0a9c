"""Settings of Sphinx. `make docs` runs `build.py`, which lays out the pages first.

Sphinx, because search, anchors and objects.inv come with it; MyST-NB, because notebooks are pages too; furo, because it needs no network. The API has
one page, docs/api.md, tested against the docstrings; autodoc would be a second. Mathematics is Unicode, as in `help()`, so there is no TeX to render:
letters that system fonts lack come from matplotlib's STIX.
"""

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "bismut"
author = "The bismut authors"
copyright = "The bismut authors, Apache-2.0"
version = release = metadata.version("bismut")
extensions = ["myst_nb", "code", "references"]
linked_code = str(HERE.parents[1] / "build" / "site-source.json")

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "off"  # notebooks show what is stored in them, which tests compare with what they print
nb_output_stderr = "remove"
nitpicky = True

html_theme = "furo"
html_title = f"bismut {release}"
html_static_path = [str(HERE / "static"), str(HERE.parents[1] / "build" / "site-fonts")]
html_css_files = ["site.css"]
html_extra_path = [str(HERE.parents[1] / "build" / "site-extra")]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # excerpts are fetched, which a browser refuses for pages opened from a disk
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2", "font-stack": "system-ui, sans-serif"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
