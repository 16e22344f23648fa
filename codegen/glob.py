# SPDX-License-Identifier: MIT
"""Shell patterns as automata, so that a set of names is matched and counted without listing it.

Semantics are those of Python's fnmatch, which CK's generator uses. A state is the set of places in the
pattern that the text so far may have reached, as an int; that is the subset construction, done lazily, so
each text has one path and counts of accepted texts are exact.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator


class Glob:
    """One pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._items: list[Callable[[str], object] | None] = []  # None: any number of any characters
        for item in _items(pattern):
            self._items.append(None if item == "*" else re.compile(fnmatch.translate(item)).match)
        self._steps: dict[tuple[int, str], int] = {}
        self._runs: dict[tuple[int, str], int] = {}
        self.start = self._reached(0)
        self._end = 1 << len(self._items)

    def run(self, state: int, text: str) -> int:
        """The state after more text; 0 when nothing can match any more."""
        key = (state, text)
        found = self._runs.get(key)
        if found is None:
            found = state
            for char in text:
                found = self._step(found, char)
            self._runs[key] = found
        return found

    def accepts(self, state: int) -> bool:
        """Whether the text that led to a state matches as it is."""
        return bool(state & self._end)

    def matches(self, text: str) -> bool:
        """Whether a whole text matches."""
        state = self.start
        for char in text:
            state = self._step(state, char)
        return self.accepts(state)

    def beginnings(self) -> Iterator[tuple[str, str]]:
        """The parts between stars, each with the pattern up to it, whatever follows."""
        begun = token = ""
        for item in [*_items(self.pattern), "*"]:
            if item == "*" and token:
                yield token, f"{begun}*"
                token = ""
            token += item if item != "*" else ""
            begun += item

    def _step(self, state: int, char: str) -> int:
        key = (state, char)
        found = self._steps.get(key)
        if found is None:
            found = 0
            for place, item in enumerate(self._items):
                if state >> place & 1:
                    if item is None:
                        found |= self._reached(place)
                    elif item(char):
                        found |= self._reached(place + 1)
            self._steps[key] = found
        return found

    def _reached(self, place: int) -> int:
        """The places reachable from a place without a character, since a star may stand for nothing."""
        state = 1 << place
        while place < len(self._items) and self._items[place] is None:
            place += 1
            state |= 1 << place
        return state


def _items(pattern: str) -> list[str]:
    """A pattern's characters, with each [set] in one piece and literal ones made safe."""
    items = []
    i = 0
    while i < len(pattern):
        end = _set_end(pattern, i) if pattern[i] == "[" else i
        items.append("[[]" if pattern[i] == "[" and end == i else pattern[i : end + 1])
        i = end + 1
    return items


def _set_end(pattern: str, begin: int) -> int:
    """The end of the [set] that begins at a place; `begin` itself when the character is an ordinary one."""
    i = begin + 1
    if pattern[i : i + 1] == "!":
        i += 1
    if pattern[i : i + 1] == "]":
        i += 1
    end = pattern.find("]", i)
    return begin if end < 0 else end
