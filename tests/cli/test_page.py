"""The run file of the documentation is a right one."""

import re
from pathlib import Path

from bismut.cli.runs.prepare import prepare
from bismut.cli.runs.toml import read

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_the_printed_run_file_has_no_mistakes(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "run.toml"
    file.write_text(text, encoding="utf-8")
    ready = prepare(*read(file), str(file))
    assert ready.scheme.title == "Langevin(GLA(Midpoint))"
    assert set(ready.observe) == set(ready.document["observe"])
