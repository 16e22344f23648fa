# SPDX-License-Identifier: MIT
"""The clock's parameters as a table: python simulator/clock/table.py"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TABLE = Path(__file__).parent / "parameters.def"


def read_parameters() -> list[tuple[str, ...]]:
    """Rows of name, three values, unit, meaning, source, and what the value was fitted to."""
    rows = re.findall(r"^P\((\w+), (.*)\)$", TABLE.read_text(), re.MULTILINE)
    return [(name, *(str(item) for item in ast.literal_eval(f"({rest})"))) for name, rest in rows]


def render() -> str:
    """The table in Markdown."""
    lines = [
        "| parameter | gfx90a | gfx942 | gfx950 | | source | fitted to |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, *values, unit, meaning, source, fit in read_parameters():
        lines.append(f"| `{name}` | {' | '.join(values)} | {unit}: {meaning} | {source} | {fit} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(render())
