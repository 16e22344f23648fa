# SPDX-License-Identifier: MIT
"""Tessera's generator: records in, C out. `generate.py` at the root is its command line."""

from collections.abc import Iterable


class Refused(Exception):
    """What was asked for cannot be had. The message is one line that says what would be accepted."""


def unknown(what: str, value: str, choices: Iterable[object]) -> str:
    """Why a value is refused that is none of `choices`."""
    return f"unknown {what} '{value}'; there is: {', '.join(map(str, choices))}"
