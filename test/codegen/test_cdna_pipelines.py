# SPDX-License-Identifier: MIT
"""The resources that pipelines of fmha_fwd take of a CDNA compute unit, and the tiles that they refuse."""

from __future__ import annotations

import pytest
from test_cdna_computes import tile

from codegen.ops.fmha_fwd.cdna import CdnaTile
from codegen.targets import TARGETS, CdnaTarget


def direct(compute: str = "bf16", **fields: object) -> CdnaTile:
    said: dict[str, object] = {"pipeline": "qr_async", "bm0": 256, "rm0": 8, "occupancy": 2}
    return tile(compute, **{**said, **fields})


def page(name: str) -> CdnaTarget:
    target = TARGETS[name]
    assert isinstance(target, CdnaTarget)
    return target


@pytest.mark.parametrize(("bn0", "hdim_q", "hdim_v"), [(64, 128, 128), (32, 192, 128), (64, 64, 64)])
def test_two_tiles_are_in_lds(bn0: int, hdim_q: int, hdim_v: int) -> None:
    one = direct(bn0=bn0, hdim_q=hdim_q, hdim_v=hdim_v)
    assert one.lds_bytes == 2 * bn0 * (hdim_q + hdim_v) * 2
    # q as it is in memory, o and two tiles' scores as fp32, for 32 queries in 64 lanes
    assert one.registers - (32 * (hdim_q // 2 + hdim_v + 2 * bn0)) // 64 in range(4, 17)


def test_lds_is_the_same_however_rows_are_loaded() -> None:
    for compute in ("fp8", "mxfp8", "mxfp4"):
        assert tile(compute, access=4).lds_bytes == tile(compute, access=16).lds_bytes


@pytest.mark.parametrize(
    ("target", "one", "says"),
    [
        ("gfx942", direct(), ""),
        ("gfx90a", direct("fp16"), ""),
        ("gfx942", direct("fp8", o="bf16"), "for fp16 and bf16 and row-major v, not fp8"),
        ("gfx942", direct(v_layout="c"), "row-major v, not bf16, c"),
        ("gfx942", direct(rm0=6, bm0=192), "rm0 = 6 is no power of 2"),
        ("gfx942", direct(hdim_q=192), "k and v take 81920 bytes of LDS, gfx942 has 65536"),
        ("gfx950", direct(hdim_q=192), ""),
        ("gfx950", direct(hdim_q=256, hdim_v=256), "scores of two tiles and v on its way take"),
        ("gfx942", tile("bf16", pipeline="qr_split"), ""),
        ("gfx942", tile("fp32", pipeline="qr_split"), "'qr_split' is for fp16 and bf16"),
        ("gfx950", tile("bf16", pipeline="qr_split", v_layout="c"), "row-major v"),
        ("gfx942", direct(pipeline="qr_bundled"), ""),
        ("gfx942", direct("fp8", pipeline="qr_bundled", o="bf16"), ""),
        ("gfx950", direct("fp8", pipeline="qr_bundled", wk0=64, o="bf16"), ""),
        ("gfx942", direct("mxfp8", pipeline="qr_bundled"), "no mxfp8 MFMA"),
        ("gfx942", direct("fp32", pipeline="qr_bundled", bn0=32), "'qr_bundled' is for fp16, bf16 and fp8"),
        (
            "gfx942",
            direct(pipeline="qr_bundled", hdim_v=96),
            "a tile of v has 768 words of four keys, no 1, 2 or 4 for each of 512 threads",
        ),
        (
            "gfx950",
            direct(pipeline="qr_bundled", hdim_q=64, hdim_v=96, bn0=32),
            "a tile of k has 4096 bytes, no multiple of the 8192 of a load of all lanes",
        ),
        ("gfx942", direct(pipeline="qs"), "pipeline 'qs' is none of qr, qr_async"),
    ],
)
def test_what_is_refused(target: str, one: CdnaTile, says: str) -> None:
    complaint = one.complaint(page(target))
    assert says in complaint and bool(says) == bool(complaint), complaint
