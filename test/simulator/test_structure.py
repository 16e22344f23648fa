# SPDX-License-Identifier: MIT
"""Rules for the dependencies between the simulator's sources, and for the names in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from conftest import SIMULATOR
from generate_tables import read_tables

# Behind the beginning of a line that is not static: a function whose body follows, or data with its value.
SYMBOL = r"^(?!static|extern|typedef)\w[^\n=;(]*?\b(tessera_(?:sim|hip)_\w+|hip[A-Z]\w+)"
FUNCTION = re.compile(SYMBOL + r"\([^;{]*\)\s*\{", re.MULTILINE)
DATA = re.compile(SYMBOL + r"(?:\[\w*\])? = ", re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)((?:.*\\\n)*.*)", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)

Uses = dict[str, set[str]]


def code(path: Path) -> str:
    """A source without its comments."""
    return re.sub(r"//[^\n]*", "", path.read_text())


def sources() -> Iterator[tuple[str, str]]:
    """Files of the simulator, by their paths in it, and their code."""
    for path in sorted(SIMULATOR.rglob("*.[ch]")):
        yield path.relative_to(SIMULATOR).as_posix(), code(path)


@cache
def files_used() -> Uses:
    """The files that each file includes, or that define what it calls."""
    texts = dict(sources())
    defined = {
        symbol: name
        for name, text in texts.items()
        if name.endswith(".c")
        for symbol in (*FUNCTION.findall(text), *DATA.findall(text))
    }
    macros = dict(macro for text in texts.values() for macro in MACRO.findall(text))
    uses: Uses = {}
    for name, text in texts.items():
        included = INCLUDE.findall(text)
        near = [str(Path(name).parent / file) for file in included]
        uses[name] = {*included, *near} & texts.keys()
        if name.endswith(".c"):
            words = set(re.findall(r"\w+", text))
            words.update(*(re.findall(r"\w+", macros[word]) for word in words & macros.keys()))
            uses[name] |= {defined[word] for word in words & defined.keys()}
    return {name: used - {name} for name, used in uses.items()}


def folders_used() -> Uses:
    """The folders that each folder uses."""
    uses: Uses = {}
    for name, used in files_used().items():
        uses.setdefault(str(Path(name).parent), set()).update(str(Path(other).parent) for other in used)
    return {folder: used - {folder} for folder, used in uses.items()}


def find_circle(uses: Uses) -> list[str]:
    """The members of a circle, and those that use them; empty where there is none."""
    left = dict(uses)
    while ready := [name for name, used in left.items() if not used & left.keys()]:
        for name in ready:
            del left[name]
    return sorted(left)


def test_find_circle() -> None:
    """A circle is found with those that use it, but not with those that it uses."""
    uses = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d"}, "f": {"a"}}
    assert find_circle(uses) == ["a", "b", "c", "f"]
    assert find_circle({"a": {"b"}, "b": set()}) == []


def test_no_circles() -> None:
    """There is no circle of files and none of folders."""
    assert find_circle(files_used()) == []
    assert find_circle(folders_used()) == []


def test_observers() -> None:
    """What runs instructions knows neither checks nor who writes about it: those are hooks of observers."""
    uses = folders_used()
    assert uses["machine"] == {"decode"}
    assert uses["code_object"] == {"machine"}
    assert uses["execute"] == {"code_object", "decode", "machine"}


def test_names() -> None:
    """What an instruction does is found by its whole name, which no macro makes of pieces.

    One that does what another does names it in its row (`is:`).
    """
    words = {
        word.removeprefix("SIM_OP_")
        for path in (SIMULATOR / "execute").glob("*.c")
        for word in re.findall(r"\w+", code(path))
    }
    readme = (SIMULATOR / "README.md").read_text()
    absent = readme.split("\nNot implemented: ")[1].split("\n\n")[0]
    found = {row.word for row in read_tables(SIMULATOR / "instructions") if row.word not in words}
    assert found == set(re.findall(r"`(\w+)`", absent))
