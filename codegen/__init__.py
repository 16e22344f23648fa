# SPDX-License-Identifier: MIT
"""Tessera's generator: records in, C out. `generate.py` at the root is its command line."""


class Refused(Exception):
    """What was asked for cannot be had. The message is one line that says what would be accepted."""


def one_of(what: str, value: str, choices: object) -> Refused:
    """The refusal of a value that is none of `choices`."""
    listed = ", ".join(str(choice) for choice in choices)  # type: ignore[attr-defined]
    return Refused(f"unknown {what} '{value}'; there is: {listed}")
