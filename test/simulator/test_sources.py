# SPDX-License-Identifier: MIT
"""simulator/sources.md: each instruction has its rules, each rule its sources or a place in the limits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest
from conftest import SIMULATOR
from generate_tables import FLAGS, Row, parse_row, read_tables

# What says how an instruction is encoded and no more.
ENCODINGS = {"vop3", "bare", "plain"}
VECTOR = ("vop1", "vop2", "vop3", "vopc", "vop3p")


def is_conversion(row: Row) -> bool:
    return row.format in VECTOR and re.match(r"v_(cvt|sat_pk|pack)_", row.mnemonic) is not None


def is_float(row: Row) -> bool:
    return row.format in VECTOR and not is_conversion(row) and any(f.type in ("F", "BF") for f in row.fields)


def is_atomic(row: Row) -> bool:
    words = r"_atomic_|ds_(add|sub|rsub|inc|dec|min|max|and|or|xor|mskor|cmpst|pk_add|wrap|wrxchg|condxchg)"
    return "atomic" in row.flags or re.search(words, row.mnemonic) is not None


def has_flag(flags: str) -> Callable[[Row], bool]:
    return lambda row: bool({*flags.split()} & {*row.flags})


def moves_between_lanes(row: Row) -> bool:
    return (
        bool({"dpp", "dpp64"} & {*row.flags})
        or re.search("lane|mbcnt|permute|swizzle|_tr_", row.mnemonic) is not None
    )


# Section of the table -> which instructions it has to cover.
SECTIONS: dict[str, Callable[[Row], bool]] = {
    "Matrices A and B": lambda row: row.format == "mai",
    "Matrices C and D": lambda row: row.format == "mai",
    "Sums of products": lambda row: row.format == "mai",
    "Modifiers of matrix products": has_flag("cbsz abid blgp f8f6f4 scaled"),
    "Moves between lanes": moves_between_lanes,
    "Parts of registers": has_flag("sdwa fp8 op_sel op_sel4 mix neg clamp omod bitop3 permlane"),
    "Conversions": is_conversion,
    "Floating point": is_float,
    "Integers and bits": lambda row: row.format in VECTOR and not is_conversion(row) and not is_float(row),
    "Scalar unit": lambda row: row.format.startswith("sop"),
    "Scalar memory": lambda row: row.format == "smem",
    "LDS": lambda row: row.format == "ds",
    "Buffers": lambda row: row.format in ("mubuf", "mtbuf"),
    "Flat, global and scratch": lambda row: row.format in ("flat", "global", "scratch"),
    "Atomics": is_atomic,
    "Loads to LDS": has_flag("lds lds950 lds_address"),
}


@dataclass(frozen=True)
class Rule:
    """A row of the table."""

    name: str
    patterns: tuple[str, ...]
    sources: str

    def covers(self, row: Row) -> bool:
        return any(
            pattern.removeprefix("flag:") in row.flags
            if pattern.startswith("flag:")
            else fnmatchcase(row.mnemonic, pattern)
            for pattern in self.patterns
        )

    def who(self) -> set[str]:
        """The sources that a rule names: the marked words of the last column."""
        return set(re.findall(r"`(\w+)`", self.sources))


TEXT = (SIMULATOR / "sources.md").read_text()


def read_rules() -> dict[str, list[Rule]]:
    rules: dict[str, list[Rule]] = {}
    for section in TEXT.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| **"):
                name = cells[0].removeprefix("**").partition("**")[0]
                patterns = tuple(" ".join(re.findall(r"`([^`]+)`", cells[1])).split())
                rules.setdefault(title, []).append(Rule(name, patterns, cells[2]))
    return rules


RULES = read_rules()
ALL_RULES = [rule for rules in RULES.values() for rule in rules]
ROWS = read_tables(SIMULATOR / "instructions")


def uncovered(rows: list[Row]) -> list[str]:
    return [
        f"{row.mnemonic}: no rule under {title!r}"
        for title, has in SECTIONS.items()
        for row in rows
        if has(row) and not any(rule.covers(row) for rule in RULES[title])
    ]


def test_every_instruction_has_its_rules() -> None:
    assert list(RULES) == list(SECTIONS)
    assert not uncovered(ROWS)
    nowhere = [row.mnemonic for row in ROWS if not any(has(row) for has in SECTIONS.values())]
    assert not nowhere


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("mai", "v_mfma_f32_64x64x16_f16 - - 99 dst=f32*4 src0=b128 src1=b128 src2=f32*4 | cbsz"),
        ("ds", "ds_gather_b32 - - 99 dst=b32 addr=b32"),
        ("vop3", "v_cvt_pk_f4_f32 - - 99 dst=b32 src0=f32 src1=f32"),
    ],
)
def test_a_new_instruction_needs_a_rule(table: str, line: str) -> None:
    assert uncovered([parse_row(table, line)])


def test_every_flag_has_a_rule() -> None:
    patterns = [pattern for rule in ALL_RULES for pattern in rule.patterns]
    named = {pattern.removeprefix("flag:") for pattern in patterns if pattern.startswith("flag:")}
    assert named | ENCODINGS == {*FLAGS}


def test_no_pattern_is_idle() -> None:
    idle = [
        f"{rule.name}: {pattern}"
        for title, rules in RULES.items()
        for rule in rules
        for pattern in rule.patterns
        if not any(Rule("", (pattern,), "").covers(row) for row in ROWS if SECTIONS[title](row))
    ]
    assert not idle
    assert not [rule.name for rule in ALL_RULES if not rule.patterns]
    assert max(Counter(rule.name for rule in ALL_RULES).values()) == 1


def test_sources_are_known_and_counted() -> None:
    """The number in front is that of those who say so: 1 is marked, and without any it is ours alone."""
    known = set(re.findall(r"^- `(\w+)`: \S", TEXT, re.MULTILINE))
    for rule in ALL_RULES:
        assert rule.who() <= known, rule
        count = len(rule.who())
        start = {0: "**ours alone**", 1: "**1**: "}.get(count, f"{count}: ")
        assert rule.sources == start if count == 0 else rule.sources.startswith(start), rule
    assert known == {who for rule in ALL_RULES for who in rule.who()}


def test_the_tally() -> None:
    counts = Counter(min(len(rule.who()), 3) for rule in ALL_RULES)
    tally = (
        f"{len(ALL_RULES)} rules: {counts[3]} with three sources or more, {counts[2]} with two, "
        f"{counts[1]} with one, {counts[0]} ours alone."
    )
    assert tally in " ".join(TEXT.split())


def test_what_is_ours_alone_stands_first_in_the_limits() -> None:
    readme = (SIMULATOR / "README.md").read_text()
    limits = readme.partition("\n## Limits\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^- \*\*(.+?)\*\*", limits, re.MULTILINE)
    ours = [rule.name for rule in ALL_RULES if not rule.who()]
    assert listed[: len(ours)] == ours
