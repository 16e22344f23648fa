# SPDX-License-Identifier: MIT
"""Pipeline hk_prefill of fmha_fwd: its head order, its clusters, the tiles that it refuses."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, run
from test_cdna_computes import tile

from codegen.machine_code import Instruction
from codegen.ops.fmha_fwd.cdna import CdnaTile
from codegen.resources import Resources
from codegen.targets import TARGETS, CdnaTarget

HEADS = """
#include <stdio.h>
#define INLINE static inline
#include "tessera/device/attention/cdna/head_order.h"
int main(void) {
    unsigned x, group, nhead_k;
    while (scanf("%u %u %u", &x, &group, &nhead_k) == 3) printf("%u\\n", transposed_head(x, group, nhead_k));
}
"""
RATIOS = [*itertools.product((1, 2, 3, 4, 7, 8, 16), (1, 2, 3, 5, 8, 16)), (71, 1), (1, 71)]


def page() -> CdnaTarget:
    target = TARGETS["gfx950"]
    assert isinstance(target, CdnaTarget)
    return target


def prefill(**fields: object) -> CdnaTile:
    said: dict[str, object] = {
        "pipeline": "hk_prefill", "bm0": 256, "rm0": 8, "bn0": 64, "hdim_q": 128, "hdim_v": 128,
        "occupancy": 2,
    }  # fmt: skip
    return tile("bf16", **{**said, **fields})


def test_each_head_occurs_once(tmp_path: Path) -> None:
    """The transpose over key heads and members: a bijection, and no change where either is one."""
    source, program = tmp_path / "heads.c", tmp_path / "heads"
    source.write_text(HEADS)
    # The vocabulary of CDNA is not for the host, and the header needs none of it but integers.
    flags = ["-std=c11", "-I", str(ROOT / "include"), "-include", "stdint.h", "-DTESSERA_ISA_CDNA_H"]
    subprocess.run(["cc", *flags, "-o", program, source], check=True)
    asked = [(x, group, heads) for group, heads in RATIOS for x in range(group * heads)]
    text = "".join("{} {} {}\n".format(*one) for one in asked)
    said = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.split()
    found = dict(zip(asked, map(int, said), strict=True))
    for group, heads in RATIOS:
        order = [found[x, group, heads] for x in range(group * heads)]
        assert sorted(order) == list(range(group * heads))
        if 1 in (group, heads):
            assert order == sorted(order)
        elif group <= heads:  # those beside one another have different key heads
            assert all(a // group != b // group for a, b in itertools.pairwise(order))


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (prefill(), ""),
        (prefill(hdim_q=64, hdim_v=64), ""),
        (prefill(rm0=4, bm0=128), "rm0 = 4: pipeline 'hk_prefill' has 8 waves"),
        (prefill(bn0=32), "takes two a round, and masks the last four"),
        (prefill(hdim_q=192), "for head dims 64 and 128, not 192, 128"),
        (prefill(v_layout="c"), "row-major v"),
    ],
)
def test_what_is_refused(one: CdnaTile, says: str) -> None:
    complaint = one.complaint(page())
    assert says in complaint and bool(says) == bool(complaint), complaint


@pytest.mark.parametrize("hdim", [64, 128])
def test_pieces_of_softmax_stand_once_in_clusters(hdim: int) -> None:
    clusters = prefill(hdim_q=hdim, hdim_v=hdim).clusters(page())

    def calls(lines: list[list[str]]) -> list[str]:
        return [
            word.rstrip(",;)") + ")" for line in lines for word in re.findall(r"\w+\([^)]*\)", " ".join(line))
        ]

    scores = calls(clusters.scores)
    values = calls([*clusters.first_strip, *clusters.other_strips])
    assert len(scores) == len(set(scores)) and len(values) == len(set(values))
    made = [call.replace("next", "s").replace("now", "s") for call in (*scores, *values)]
    for name, count in (("exponential", 32), ("add", 32), ("pack_word", 16), ("maximum", 16)):
        assert len({call for call in made if call.startswith(f"{name}(")}) == count
    assert len([call for call in scores if call.startswith("score(")]) == hdim // 8
    assert len([call for call in values if call.startswith("value(")]) == hdim // 8
    for e in range(clusters.early, 32):  # an exponential stands before its sum
        assert scores.index(f"exponential(x, now, {e})") < scores.index(f"add(x, now, {e})")


# ---- what the build checks on the machine code


def cluster(*names: str) -> list[Instruction]:
    kinds = {"mfma": ("mai", "v_mfma_f32_32x32x16_bf16"), "lds": ("ds", ""), "memory": ("mubuf", "")}
    found = []
    for name in names:
        format_, text = kinds.get(name, ("sopp", name))
        found.append(Instruction(0, 4, format_, text, under_way=4 if name == "s_waitcnt" else None))
    return found


PRODUCTS, ACCESSES = ("s_waitcnt", "mfma", "s_barrier"), ("memory", "lds", "s_waitcnt", "s_barrier")


@pytest.mark.parametrize(
    ("place", "there", "says"),
    [
        (0, PRODUCTS, []),
        (
            2,
            (*PRODUCTS[:-1], "lds", "s_barrier"),
            ["1 accesses of LDS and 0 of memory in cluster 2, which is for prod"],
        ),
        (3, (*ACCESSES[:-1], "mfma", "s_barrier"), ["1 products, 1 accesses of LDS"]),
        (4, ("mfma", "s_barrier"), ["has 0 waits in cluster 4, not 1"]),
        (1, ("lds", "s_waitcnt", "s_barrier"), ["0 of memory in cluster 1, which is for accesses alone"]),
        (7, None, ["has 7 clusters in its main loop, not 8"]),
    ],
)
def test_broken_clusters_are_refused(
    place: int, there: tuple[str, ...] | None, says: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [PRODUCTS, ACCESSES] * 4
    found = [cluster(*(there if n == place and there else one)) for n, one in enumerate(names)]
    if there is None:
        del found[place]
    monkeypatch.setattr("codegen.resources.instructions", lambda code, arch: [])
    monkeypatch.setattr("codegen.resources.clusters", lambda code: found)
    kernel = Resources("x__gfx950_hk_prefill", page(), 256, 0, 100, 65536, 0, 0, 0, 512, b"")
    complaints = kernel.complaints()
    assert len(complaints) == len(says) and all(a in b for a, b in zip(says, complaints))


def test_served() -> None:
    """Long prefill alone: batch mode without other features; lengths are the call's to say."""
    rows = run("--targets", "gfx950", "--table", "--where", "pipeline=hk_prefill").lines
    assert sum("hk_prefill" in row for row in rows) == 2
    for clause in (
        "mode=group",
        "bias=bias",
        "dropout=yes",
        "logits=yes",
        "dtype=fp16",
    ):
        assert run("--targets", "gfx950", "--count", "--where", f"pipeline=hk_prefill {clause}").code != 0
