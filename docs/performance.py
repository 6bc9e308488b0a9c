"""The tables of docs/performance.md, from docs/data/benchmarks.json.

python docs/performance.py                            # write them into the page
python docs/performance.py output/benchmarks.json     # take over what `make bench` has measured, and write them (output/samplers.json likewise)
python docs/performance.py --print                    # the page, to standard output
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("performance.md")
DATA = Path(__file__).parent / "data" / "benchmarks.json"
TABLE = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end table -->)", re.DOTALL)
OURSELVES = ("a box of 500", "one core", "4000 points", "10 links", "long run")  # rows that compare bismut with itself


def taken_over(found: dict[str, Any]) -> dict[str, Any]:
    """What the page needs of output/benchmarks.json: speeds in millions of path-steps a second, or body-steps, and ratios."""
    rows = [
        {
            "work": row["work"],
            "peer": row["peer"],
            "observers": row["at_most"],
            "missing": row["missing"],
            "ours": None if row["missing"] else _digits(row["ours_found"]["speed"] / 1e6),
            "theirs": None if row["missing"] else _digits(row["peer_found"]["speed"] / 1e6),
            "ratio": row["ratio"] and _digits(row["ratio"]),
            "effort": row["effort"] and _digits(row["effort"]),
        }
        for row in found["goals"]
    ]
    first = [{"work": row["work"], "seconds": _digits(row["seconds"])} for row in found.get("first", [])]
    alone = [{"work": f"{row['work']}, million steps a second", "value": _digits(row["speed"])} for row in found.get("alone", [])]
    memory = [{"work": f"{row['work']}, GB", "value": _digits(row["bytes"] / 1e9)} for row in found.get("memory", []) if not row["missing"]]
    return {name: found[name] for name in ("date", "machine", "python")} | {"rows": rows, "first": first, "alone": alone + memory}


def samplers_taken_over(found: dict[str, Any]) -> dict[str, Any]:
    """What the page needs of output/samplers.json: effective draws a second."""
    rows = [
        {"work": row["work"], "peer": row["peer"]} | {name: row[name] and _digits(row[name]) for name in ("ours", "theirs", "ratio")}
        for row in found["samplers"]
    ]
    return {name: found[name] for name in ("date", "machine", "python")} | {"rows": rows}


def _digits(number: float) -> float:
    return float(f"{number:.3g}")


def page(text: str, data: dict[str, Any]) -> str:
    """The page with its tables."""
    tables = {"others": _others, "observers": _observers, "ourselves": _ourselves, "first results": _first, "alone": _alone, "samplers": _samplers}
    named = [name for _, name, _ in TABLE.findall(text)]
    if sorted(named) != sorted(tables):
        raise SystemExit(f"docs/performance.md: expected one place for each table, {', '.join(tables)}; got {', '.join(named) or 'none'}.")
    return TABLE.sub(lambda found: f"{found[1]}\n{tables[found[2]](data)}\n\n{found[3]}", text)


def _table(head: list[str], rows: list[list[str]]) -> str:
    line = lambda cells: f"| {' | '.join(cells)} |"
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.3g}" if number < 100 else f"{number:.0f}"


def _others(data: dict[str, Any]) -> str:
    rows = [row for row in data["rows"] if not row["observers"] and row["peer"] not in OURSELVES]
    cells = [
        [row["work"], "", row["peer"], "", f"not measured: {row['missing']}", ""]
        if row["missing"]
        else [row["work"], _shown(row["ours"]), row["peer"], _shown(row["theirs"]), _shown(row["ratio"]), _shown(row["effort"])]
        for row in rows
    ]
    return _table(["work", "bismut", "peer", "its speed", "ratio", "for a second of processor time"], cells) + "\n\n" + _measured(data)


def _observers(data: dict[str, Any]) -> str:
    rows = [row for row in data["rows"] if row["observers"]]
    peers = list(dict.fromkeys(row["peer"] for row in rows))
    works = list(dict.fromkeys(row["work"] for row in rows))
    found = {(row["work"], row["peer"]): row["effort"] or row["ratio"] for row in rows}
    return _table(["", *peers], [[work, *(_shown(found.get((work, peer))) for peer in peers)] for work in works])


def _ourselves(data: dict[str, Any]) -> str:
    rows = [row for row in data["rows"] if row["peer"] in OURSELVES and not row["missing"]]
    return _table(
        ["", "over", "ratio", "for a second of processor time"],
        [[row["work"], row["peer"], _shown(row["ratio"]), _shown(row["effort"])] for row in rows],
    )


def _first(data: dict[str, Any]) -> str:
    return _table(["first result of", "seconds"], [[row["work"], _shown(row["seconds"])] for row in data["first"]])


def _alone(data: dict[str, Any]) -> str:
    return _table(["", ""], [[row["work"], _shown(row["value"])] for row in data.get("alone", ())])


def _samplers(data: dict[str, Any]) -> str:
    if "samplers" not in data:
        return "not measured"
    rows = data["samplers"]["rows"]
    cells = [[row["work"], _whole(row["ours"]), row["peer"], _whole(row["theirs"]) or "not measured", _shown(row["ratio"])] for row in rows]
    return _table(["density", "bismut", "peer", "its draws a second", "ratio"], cells) + "\n\n" + _measured(data["samplers"])


def _whole(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}".replace(",", " ")


def _measured(data: dict[str, Any]) -> str:
    return f"Measured on {data['date']}, {data['machine']}, Python {data['python']}."


def main() -> None:
    new = [Path(word) for word in sys.argv[1:] if not word.startswith("--")]
    for file in new:
        found, known = json.loads(file.read_text()), json.loads(DATA.read_text(encoding="utf-8"))
        now = {"samplers": samplers_taken_over(found)} if "samplers" in found else taken_over(found)
        DATA.write_text(json.dumps(known | now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    made = page(PAGE.read_text(encoding="utf-8"), json.loads(DATA.read_text(encoding="utf-8")))
    if "--print" in sys.argv:
        sys.stdout.write(made)
    else:
        PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
