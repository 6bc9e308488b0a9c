"""The page of functions that have machine code is what the engine says."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_functions_is_current():
    spec = importlib.util.spec_from_file_location("functions_page", DOCS / "functions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "python docs/functions.py writes it"
