# SPDX-License-Identifier: MIT
"""Tessera's generator: records in, C out. `generate.py` at the root is its command line."""

import difflib
from collections.abc import Iterable

MANY = 60  # more choices are not all named
CLOSEST = 5


class Refused(Exception):
    """What was asked for cannot be had. The message is one line that says what would be accepted."""


def unknown(what: str, value: str, choices: Iterable[object]) -> str:
    """Why a value is refused that is none of `choices`."""
    names = list(map(str, choices))
    if len(names) <= MANY:
        return f"unknown {what} '{value}'; there is: {', '.join(names)}"
    closest = difflib.get_close_matches(value, names, CLOSEST, cutoff=0)
    return f"unknown {what} '{value}'; the closest of {len(names)}: {', '.join(closest)}"
