# SPDX-License-Identifier: MIT
"""Counts the cases of JUnit XML files as pytest, GoogleTest and CTest write them.

Prints PASSED FAILED SKIPPED, then a line for each case that failed and for each reason to skip. CTest's entry
FOLDER.NAME stands for the cases of FOLDER_NAME.xml where that is given too, and counts itself only where it
failed although none of them did.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path


def outcome(case: ET.Element) -> str:
    """What became of a case; the three programs say it in three ways."""
    said = {element.tag for element in case} | {case.get("status"), case.get("result")}
    if said & {"failure", "error", "fail"}:
        return "failed"
    if said & {"skipped", "notrun", "disabled"}:
        return "skipped"
    return "passed"


def reason(case: ET.Element) -> str:
    """Why a case was skipped, as far as its file says."""
    element = case.find("skipped")
    text = (element.get("message") if element is not None else None) or case.get("name") or ""
    return text.strip().splitlines()[-1]


def cases(files: list[Path]) -> list[tuple[str, ET.Element]]:
    """Every case that counts, with its name."""
    found = {file.stem: list(ET.parse(file).getroot().iter("testcase")) for file in files}
    programs = found.pop("ctest", [])
    listed = [case for file in found.values() for case in file]
    counted = [(f"{case.get('classname')}.{case.get('name')}", case) for case in listed]
    for program in programs:
        name = program.get("name", "")
        own = found.get(name.replace(".", "_", 1))
        failed = outcome(program) == "failed"
        if own is None or (failed and all(outcome(case) != "failed" for case in own)):
            counted.append((name, program))
    return counted


def main() -> int:
    """Counts the files of the command line."""
    counted = cases([Path(name) for name in sys.argv[1:]])
    outcomes = Counter(outcome(case) for _, case in counted)
    print(outcomes["passed"], outcomes["failed"], outcomes["skipped"])
    for name, case in counted:
        if outcome(case) == "failed":
            print(f"failed: {name}")
    for why, count in Counter(reason(case) for _, case in counted if outcome(case) == "skipped").items():
        print(f"skipped: {count} x {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
