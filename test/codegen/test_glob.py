# SPDX-License-Identifier: MIT
"""Patterns match what Python's fnmatch matches."""

from __future__ import annotations

import fnmatch

from hypothesis import example, given
from hypothesis import strategies as st

from codegen.glob import Glob

patterns = st.text("ab_*?[]!-^.", max_size=12)
texts = st.text("ab_[]!-^.", max_size=12)


@given(patterns, texts)
@example("[", "[")
@example("[]a]b", "]b")
@example("[!a]*", "b")
@example("a[b", "a[b")
@example("**", "")
def test_matches_as_fnmatch_does(pattern: str, text: str) -> None:
    assert Glob(pattern).matches(text) == fnmatch.fnmatchcase(text, pattern)


@given(patterns, texts, texts)
def test_runs_can_be_cut_anywhere(pattern: str, left: str, right: str) -> None:
    glob = Glob(pattern)
    assert glob.accepts(glob.run(glob.run(glob.start, left), right)) == glob.matches(left + right)


def test_beginnings() -> None:
    assert list(Glob("*_fp16*_n[b*]*x").beginnings()) == [
        ("_fp16", "*_fp16*"),
        ("_n[b*]", "*_fp16*_n[b*]*"),
        ("x", "*_fp16*_n[b*]*x*"),
    ]
