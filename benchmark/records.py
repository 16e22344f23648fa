# SPDX-License-Identifier: MIT
"""What was measured: a file with a line of JSON for each case and rival, of one machine or several."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Case = tuple[object, ...]


def case_of(record: Record) -> Case:
    """What is measured anew together: its records, one for each rival, are of the same rounds."""
    return record["processor"], record["case"], record["threads"]


def read(path: Path) -> dict[Case, list[Record]]:
    """The records of each case; none where there is no file yet."""
    cases: dict[Case, list[Record]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        record = json.loads(line)
        cases.setdefault(case_of(record), []).append(record)
    return cases


def replace(path: Path, records: list[Record]) -> None:
    """Writes the records of a case, in place of older ones."""
    cases = read(path)
    cases[case_of(records[0])] = records
    beside = path.with_name(path.name + ".new")
    beside.write_text("".join(json.dumps(record) + "\n" for case in cases.values() for record in case))
    os.replace(beside, path)


def processor(cpuinfo: str) -> str:
    """The name of a processor in Linux's words. Virtual machines hide the number of a Xeon's model."""
    fields = dict(line.split(":", 1) for line in cpuinfo.splitlines() if ":" in line)
    of = {name.strip(): value.strip() for name, value in fields.items()}
    return of.get("model name", "unknown") + (", AMX" if "amx_tile" in of.get("flags", "").split() else "")
