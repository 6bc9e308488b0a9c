"""The LAMMPS input of docs/coming-from.md, run as printed: python -m benchmarks.page. Its rotations must be at the temperature of the bath.

    ⟨E_rot⟩ = 3/2 N kT

over 1000 bodies and 300 looks a standard error is below 0.01, so that 0.05 is no chance.
"""

import re
import sys
from pathlib import Path

from benchmarks.peers.lammps import engine
from benchmarks.timing import Missing

PAGE = Path(__file__).parents[1] / "docs" / "coming-from.md"


def main() -> None:
    try:
        one = engine()
    except (ImportError, Missing) as problem:
        print(f"missing: LAMMPS, so that its input on {PAGE.name} was not run ({problem})")
        return
    found = re.search(r"```lammps\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, "the page has an input for LAMMPS"
    one.commands_string(found[1])
    warm = one.extract_fix("look", 0, 0)
    print(f"{PAGE.name}: LAMMPS' rotations are at {warm:.3f} kT")
    sys.exit(0 if abs(warm - 1) < 0.05 else 1)


if __name__ == "__main__":
    main()
