# SPDX-License-Identifier: MIT
"""Circles of compiled files: each needs itself, by way of the others."""

from __future__ import annotations

import graphlib
import subprocess
from collections.abc import Iterable
from pathlib import Path


def circle(objects: Iterable[Path]) -> list[str]:
    """The files of one circle, or nothing where there is none."""
    defines: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for file in objects:
        listed = subprocess.run(["nm", "-P", file], capture_output=True, text=True, check=True).stdout
        symbols = [line.split()[:2] for line in listed.splitlines()]
        needs[file.stem] = {name for name, letter in symbols if letter == "U"}
        defines |= {name: file.stem for name, letter in symbols if letter in "BCDRTVW"}
    graph = {
        file: {defines[name] for name in names if name in defines} - {file} for file, names in needs.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []
