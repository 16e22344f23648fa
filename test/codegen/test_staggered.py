# SPDX-License-Identifier: MIT
"""Pipeline staggered of mla_prefill: its rows, and the checks of its machine code."""

from __future__ import annotations

import dataclasses

import pytest
from conftest import run

from codegen import staggered
from codegen.machine_code import Instruction
from codegen.resources import Resources
from codegen.targets import TARGETS, CdnaTarget

NAME = "mla_prefill_fp8bf16__gfx950_b256x128x192_w8_staggered"


def page() -> CdnaTarget:
    target = TARGETS["gfx950"]
    assert isinstance(target, CdnaTarget)
    return target


def one(name: str) -> Instruction:
    """An instruction of a kind, by a name."""
    formats = {"mfma": "mai", "read": "ds", "load": "mubuf", "v_exp_f32": "vop1", "v": "vop3"}
    waits = {"drain": (63, 0), "soft": (63, 4), "arrived": (0, 15)}
    if name in waits:
        under_way, reads = waits[name]
        return Instruction(0, 4, "sopp", "s_waitcnt", under_way=under_way, reads_under_way=reads)
    return Instruction(0, 4, formats.get(name, "sopp"), name, to_lds=name == "load")


def tile(reads_v_early: bool) -> list[list[str]]:
    """The clusters of a tile."""
    early = ["read"] if reads_v_early else []
    return [
        ["soft", *["mfma", "read"] * 20, "s_barrier"],
        [*([] if early else ["read"]), "s_barrier"],
        ["v", "s_barrier"],
        ["s_barrier"],
        ["v", "s_barrier"],
        [*["v"] * 32, "arrived", "s_barrier"],
        ["s_barrier"],
    ]


def complaints(
    tiles: list[list[str]], body: list[str], monkeypatch: pytest.MonkeyPatch, early: bool = True
) -> list[str]:
    monkeypatch.setattr(staggered, "clusters", lambda code: [[one(name) for name in c] for c in tiles])
    monkeypatch.setattr(staggered, "loop_body", lambda code: [one(name) for name in body])
    return list(staggered.complaints([], early))


BODY = ["load"] * 40 + ["v_exp_f32"] * 520


@pytest.mark.parametrize("early", [False, True])
def test_clusters_as_planned(early: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complaints(tile(early) * 4, BODY, monkeypatch, early) == []
    assert complaints(tile(not early) * 4, BODY, monkeypatch, early)


@pytest.mark.parametrize(
    ("cluster", "change", "says"),
    [
        (0, lambda c: c[:-3] + c[-1:], "has 19 products, not 20, in C_PV and C_QK of tile 1"),
        (0, lambda c: ["mfma", "drain", *c[3:]], "waits 1 times until no read of LDS is under way in C_PV"),
        (0, lambda c: [name for name in c if name != "read"], "has 0 reads of LDS, not some, in C_PV"),
        (1, lambda c: ["read", *c], "has 1 reads of LDS, not none, in C_V_PREFETCH"),
        (2, lambda c: ["load", *c], "has accesses of memory on the way of all waves in C_SOFTMAX_MAX"),
        (3, lambda c: ["v", *c], None),
        (4, lambda c: ["arrived", *c], "waits for loads 1 times, not 0, in C_EXP of the half ahead"),
        (5, lambda c: ["v", *c], "has 33 vector instructions, not 32, in C_FP8_PACK"),
        (5, lambda c: c[:-2] + c[-1:], "waits for loads 0 times, not 1, in C_FP8_PACK"),
        (6, lambda c: ["v", *c], "has 1 vector instructions, not 0, in the beginning of C_PV"),
    ],
)
def test_broken_clusters(
    cluster: int, change: object, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(change)
    found = tile(True) * 4
    found[7 + cluster] = change(found[7 + cluster])
    said = complaints(found, BODY, monkeypatch)
    assert said == [] if says is None else len(said) == 1 and says in said[0]


def test_broken_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    assert complaints(tile(True) * 3, BODY, monkeypatch) == ["has 21 barriers in its main loop, not 28"]
    assert complaints(tile(True) * 4, BODY[1:], monkeypatch) == [
        "has 39 loads to LDS in its main loop, not 40"
    ]
    said = complaints(tile(True) * 4, BODY[:-1], monkeypatch)
    assert said == ["has 519 exponentials in its main loop, not 520"]


@pytest.mark.parametrize(
    ("suffix", "early"),
    [
        ("", True),
        ("_qt0", False),
        ("_persistent1", False),
        ("_persistent1_es0", False),
        ("_persistent1_qt1", True),
    ],
)
def test_names_say_who_reads_values(suffix: str, early: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("codegen.resources.instructions", lambda code, arch: [])
    monkeypatch.setattr(staggered, "complaints", lambda code, early: asked.append(early) or ["broken"])
    kernel = Resources(NAME + suffix, page(), 256, 0, 100, 163840, 0, 0, 0, 512, b"")
    assert kernel.complaints() == ["broken"] and asked == [early]
    kernel = dataclasses.replace(kernel, vgprs=264)
    assert kernel.complaints()[0] == "takes 264 registers, which leave room for 0 waves of a SIMD"


def test_rows() -> None:
    """fp8 alone, for both kinds of grids."""
    rows = run("--api", "mla_prefill", "--targets", "gfx950", "--table").lines
    assert sum("staggered" in row for row in rows) == 2
    where = ("--api", "mla_prefill", "--targets", "gfx950", "--count", "--where")
    assert run(*where, "dtype=bf16").code != 0
    assert run(*where, "dtype=fp8bf16 mode=group mask!=no lse=yes").code == 0
