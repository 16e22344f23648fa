# SPDX-License-Identifier: MIT
"""Counts test cases in JUnit XML files, as pytest, GoogleTest and CTest write them: prints PASSED FAILED SKIPPED, then
a line for each that failed and for each reason to skip. A CTest entry that has a file of its own (FOLDER.NAME beside
FOLDER_NAME.xml) is counted from that file, unless it failed in another way than by its cases."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path


def outcome(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("result") == "skipped" or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def main() -> int:
    counts: Counter[str] = Counter()
    failed: list[str] = []
    reasons: Counter[str] = Counter()
    files = [Path(name) for name in sys.argv[1:]]
    seen_failures: Counter[str] = Counter()

    def add(case: ET.Element, name: str) -> str:
        result = outcome(case)
        counts[result] += 1
        if result == "failed":
            failed.append(name)
        if result == "skipped":
            skipped = case.find("skipped")
            reasons[(skipped.get("message") if skipped is not None else None) or name] += 1
        return result

    roots = {file: ET.parse(file).getroot() for file in files}
    is_ctest = {file: file.name.startswith("ctest") for file in files}
    for file, root in roots.items():
        if not is_ctest[file]:
            for case in root.iter("testcase"):
                result = add(case, f"{case.get('classname')}.{case.get('name')}")
                seen_failures[file.stem] += result == "failed"
    for file, root in roots.items():
        if is_ctest[file]:
            for case in root.iter("testcase"):
                name = case.get("name", "")
                own = name.replace(".", "_", 1)
                if own not in {other.stem for other in files} or (outcome(case) == "failed" and not seen_failures[own]):
                    add(case, name)

    print(counts["passed"], counts["failed"], counts["skipped"])
    for name in failed:
        print(f"failed: {name}")
    for reason, count in reasons.items():
        print(f"skipped: {count} x {' '.join(reason.split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
