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


ZEN = {"23": "Zen", "25": "Zen 3", "26": "Zen 5"}  # by AMD's family; of 25 those with AVX-512 are Zen 4


def processor(cpuinfo: str) -> str:
    """The name of a processor in Linux's words, with what tells those apart whose model is hidden.

    Families: AMD's revision guides 57095 (25, models 10h) and 58251 (26); Linux's arch/x86/kernel/cpu/amd.c.
    """
    fields = dict(line.split(":", 1) for line in cpuinfo.splitlines() if ":" in line)
    of = {name.strip(): value.strip() for name, value in fields.items()}
    name, flags = of.get("model name", "unknown"), of.get("flags", "").split()
    if of.get("vendor_id") == "AuthenticAMD":
        zen = ZEN.get(of.get("cpu family", ""), "")
        name += ", Zen 4" if zen == "Zen 3" and "avx512f" in flags else f", {zen}" if zen else ""
    return name + (", AMX" if "amx_tile" in flags else "")
